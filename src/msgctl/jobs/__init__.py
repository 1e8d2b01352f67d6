"""Bulk sends as jobs: recipients come in from a file, stand in a ledger, and leave from there.

`recipients` and `template` read what the user wrote, `intake` puts it into a ledger (`ledger`, one SQLite file a job,
whose states are drawn in `states`), `runner` lets it leave request by request, `report` and `delivery` tell what
became of it. Nothing here prints.
"""
