"""Private files and SQLite databases on this machine."""
