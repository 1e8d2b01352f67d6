"""What runs a command: the command tree, one run's context, its streams and signals, and its errors."""
