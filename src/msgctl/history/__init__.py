"""Records on this machine: the history of sends, keys of --once, and opt-outs."""
