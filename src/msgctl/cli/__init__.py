"""The machinery of the command line: everything that commands share."""
