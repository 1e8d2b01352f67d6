"""The command tree, the context of one run, its streams and signals, and its errors."""
