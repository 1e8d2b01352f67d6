"""Files of people: `reader` turns any supported format into rows with a phone number, and `template` fills messages.

`formats` reads text, `workbook` reads Excel in a child process, and `header` finds the columns.
"""
