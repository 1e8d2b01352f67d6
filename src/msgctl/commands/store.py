"""`msgctl store`: move everything that msgctl remembers to another store."""

from __future__ import annotations

from contextlib import ExitStack, closing
from typing import Annotated

from msgctl.cli.options.profile import store_location
from msgctl.cli.shell.context import Context
from msgctl.cli.shell.options import value_option
from msgctl.cli.shell.tree import command, group
from msgctl.config.urls import without_password
from msgctl.errors import STORE_ERRORS
from msgctl.output.result import TextResult
from msgctl.store import move as moves
from msgctl.store.store import open_store
from msgctl.text import plural

app = group(
    """Move everything that msgctl remembers to another store.

    A store is an SQLite file, for one user of one machine, or a PostgreSQL database, for all machines that use it.
    """
)


@command(
    app,
    "move",
    "msgctl store move --to postgresql://msgctl@db.example/msgctl",
    "msgctl store move --to ~/messages.sqlite3",
    output=(),
    json="object",
)
def move(
    context: Context,
    to: Annotated[
        str,
        value_option(
            "--to", "STORE", "The other store, which must be empty: a path or a postgresql:// URL.", store_location
        ),
    ],
) -> TextResult:
    """Move --once keys, opt-outs, history and jobs from the store in use to an empty one.

    Nothing can be sent during the move. It closes the old store: commands that send with that store exit with 3, so
    that no job is in two stores. If the move is interrupted, the same command continues it.

    No job may be running. Other machines and profiles that use the old store need the new setting, too.

    To move back to a closed store, delete it first: its records are in the store in use. `msgctl help servers`
    shows how.
    """
    location, timeout = context.store_location, context.options.timeout
    place = without_password(to)
    with ExitStack() as stack:
        try:
            old, new = (
                stack.enter_context(closing(open_store(store, timeout=timeout, clock=context.clock, is_moving=True)))
                for store in (location, to)
            )
        except STORE_ERRORS as error:
            raise error.replaced(consequence="nothing was changed") from None
        begun = f"Moving to {place}. Nothing can be sent meanwhile."
        moves.move(old, new, place, lambda: context.note(begun))
        contents, old_place = moves.contents(new), old.db.place
    use = context.commands_for_store(place)
    context.note(
        f"Moved {plural(contents.optouts, 'opt-out')}, {plural(contents.keys, 'key')}, {plural(contents.jobs, 'job')} "
        f"and {plural(contents.messages, 'message')}. The old store is closed."
    )
    context.note("\n".join(["Use the new store:", *use]))
    if place != to:
        context.note("The password is not in these commands: put it in PGPASSWORD, or in ~/.pgpass (mode 0600).")
    return TextResult("", {"from": old_place, "to": place, **contents._asdict(), "use": use})
