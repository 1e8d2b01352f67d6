"""msgctl: SMS, calls, verification codes, short URLs and chat-app messages from the command line.

Modules, from the top of the import order to the bottom:

- ``__main__``: the entry point. ``reference``: manual pages and ``commands --json``.
- ``commands``: one module per group, with options, wiring and run of each command.
- ``cli.runs`` and ``cli.options``: what commands share. ``cli.shell``: what runs a command. ``doctor``: its checks.
- ``jobs``: sending to many people. ``lists``: files of people. ``output``: everything that people see, drawn by Rich.
- ``sandbox``: the emulator. It imports nothing from ``http``, so that the two cannot share a mistake.
- ``store``: everything that msgctl remembers, in SQLite or PostgreSQL.
- ``outcomes``: what a response means. ``http``: requests and the transport. ``config``: profiles and keys.
- ``operations``: the 13 operations as data. ``values``, ``phones``, ``segments``, ``text``, ``jsontext``, ``errors``.

One run, ``msgctl sms send 573001234567 -m Hola``:

1. ``cli.shell.main`` builds the command tree, and ``cli.shell.tree`` loads ``commands.sms``, which reads the arguments.
2. One ``Request`` is built and passes through the dry run, the store, the client and errors.
3. The store commits the intent, with the key of ``--once`` and opt-outs, in one transaction.
4. The client sends the request. ``outcomes.judge`` returns an outcome per recipient.
5. The store commits the outcomes. ``output.printer`` prints the result, or ``cli.shell.errors`` the error.
"""

__version__ = "0.4.0"
