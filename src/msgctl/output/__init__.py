"""Print results: as a table, as JSON, as csv or tsv. Only what a terminal shows loads Rich."""
