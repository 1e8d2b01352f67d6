"""The only place that prints a result: as a table, as JSON, as csv or tsv.

`printer` is the way in, `form` names the formats. Rich is loaded only for tables on a terminal.
"""
