"""The commands, one module per group: options, wiring and run of each command in one place."""
