"""msgctl: SMS, calls, verification codes, short URLs and chat-app messages from the command line.

Modules, from the top of the import order to the bottom:

- ``__main__``: the entry point. ``testing``: the sandbox in Python tests.
- ``commands``: one module per group, with options, wiring and run of each command.
- ``reference``: manual pages and ``commands --json``.
- ``cli.runs`` and ``cli.options``: what commands share. ``cli.shell``: what runs a command.
- ``output``: everything that people see, drawn by Rich.
- ``jobs``: sending to many people.
- ``sandbox``: the emulator. It imports nothing from ``http``, so that the two cannot share a mistake.
- ``lists``: files of people. ``store``: everything that msgctl remembers, in SQLite or PostgreSQL.
- ``http``: requests, the client and its transport.
- ``outcomes``: what a response means. ``config``: profiles and keys.
- ``values``: the types of options. ``files``: private files.
- ``operations``: the 13 operations as data. ``phones``, ``segments``, ``credits``, ``jsontext``, ``errors``, ``text``.

One run, ``msgctl sms send 573001234567 -m Hola``:

1. ``cli.shell.main`` builds the command tree, and ``cli.shell.tree`` loads ``commands.sms``. Its ``send`` reads the
   arguments and builds one ``Request``.
2. ``cli.runs.single`` is the whole send: dry run, key, intent, request, outcome.
3. ``store.sends`` commits the intent, with the key of ``--once`` and the opt-outs, in one transaction.
4. ``http.client`` makes the request. ``outcomes.judge`` returns an ``Outcome`` per recipient, and ``store.sends``
   commits it.
5. ``output.printer`` prints the result, or ``cli.shell.errors`` the error.
"""

__version__ = "0.4.0"
