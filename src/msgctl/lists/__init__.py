"""Files of people: `reader` turns any supported format into rows with a phone number, and `template` fills messages.

`formats` reads text, `workbook` reads Excel in a child process, and `sheets` chooses the sheet. `header` finds the
header and the phone columns, and `table` reads the rows below it.
"""
