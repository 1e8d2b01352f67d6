"""Print results: as a table, as JSON, as csv or tsv. Only output for a terminal loads Rich."""
