"""The groups of options that commands share, and how they are read."""
