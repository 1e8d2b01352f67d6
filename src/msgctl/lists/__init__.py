"""Files of people: `reader` turns any supported format into rows with a phone number, and `template` fills messages.

`formats` reads text, `workbook` reads Excel in a child process, and `sheets` chooses the sheet. `table` finds the
header with `header`, and reads the rows below it.
"""
