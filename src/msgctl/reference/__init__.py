"""The manual pages and completion scripts, written from the command tree.

``python -m msgctl.reference [FOLDER]`` writes ``man`` and ``completions`` below FOLDER, by default the current one.
The text of a manual page beyond the help is in ``pages/``.
"""
