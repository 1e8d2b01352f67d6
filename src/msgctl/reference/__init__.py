"""The manual pages and completion scripts, written from the command tree.

``python -m msgctl.reference [FOLDER]`` writes ``man`` and ``completions`` in FOLDER, by default the current directory.
The text of manual pages that is not in the help is in ``pages/``.
"""
