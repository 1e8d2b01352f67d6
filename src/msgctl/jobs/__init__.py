"""Bulk sends as jobs: recipients become rows in the store, which are sent request by request.

`settings` describes a job, `importer` writes its rows to the store, `tally` counts its messages, and `plan` summarizes
it before it is sent.
`sending` makes the requests within the `limits` and the hours of `schedule`. `ending` describes how the job ended,
and `report` summarizes the results. Nothing here prints.
"""
