"""Bulk sends as jobs: a file of recipients becomes a ledger, one SQLite file per job, which is sent request by request.

`reader` and `template` read the user's file and message, `importer` writes them to a `ledger`, `runner` sends them and
checks delivery states, and `report` summarizes the results. Nothing here prints.
"""
