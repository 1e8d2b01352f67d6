"""The manual pages, written from the command tree, and the description for programs.

``python -m msgctl.reference [FOLDER]`` writes ``man``, and ``completions`` with Typer's scripts, in FOLDER, by default
the current directory. The text of manual pages that is not in the help is in ``pages/``.
"""
