"""Bulk sends as jobs: a file of recipients is imported into a ledger, and sent from there.

`reader` and `template` read what the user wrote, `importer` writes it into a ledger (`ledger`: one SQLite file per job,
whose states are in `states`), `runner` sends it request by request, `report` and `state_poller` report the outcome.
Nothing here prints.
"""
