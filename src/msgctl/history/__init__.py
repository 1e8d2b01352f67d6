"""What was sent from this machine: the history, keys of --once, opt-outs, and the spending of `msgctl mcp`."""
