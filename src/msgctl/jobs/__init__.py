"""Bulk sends as jobs: a file of recipients becomes a ledger, one SQLite file per job, which is sent request by request.

`reader` and `template` read what the user wrote, `importer` writes it into a `ledger`, `runner` sends it and checks
delivery states, and `report` summarizes the results. Nothing here prints.
"""
