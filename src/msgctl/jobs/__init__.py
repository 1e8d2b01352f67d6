"""One message for each recipient in a file, as a job that survives a crash.

::

    recipients   a file (CSV or JSON Lines) -> its rows, and what is wrong with the others
    template     a text with {column} in it -> the text for one row
    ledger       what is to be sent, what was under way, what came back (SQLite; no HTTP)
    runner       ledger <-> client
"""
