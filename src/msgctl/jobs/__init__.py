"""Bulk sends as jobs: a file of recipients becomes rows in the store, which are sent request by request.

`reader` and `template` read the user's file and message, and `importer` writes them to the store. `settings` describes
a job, `plan` summarizes it before it is sent, and `ending` describes how it ended. `sending` makes the requests within
the `limits` and the hours of `schedule`, `states` polls delivery states, and `report` summarizes the results. Nothing
here prints.
"""
