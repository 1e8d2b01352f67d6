"""Private files and SQLite databases of the user."""
