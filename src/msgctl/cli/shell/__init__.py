"""The command tree, the context of one run, its signals, and its errors."""
