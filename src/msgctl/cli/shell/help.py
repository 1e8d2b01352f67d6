"""Help pages: Typer's own, with the options in panels."""

from contextlib import redirect_stdout

import typer

GLOBAL = "Global options"
MESSAGE, RECIPIENTS, SAFETY, WHEN, SPEED, DELIVERY = "Message", "Recipients", "Safety", "When", "Speed", "Delivery"
ACCOUNT, PREFERENCES, ADDRESS, BEHAVIOUR = "Account", "Defaults", "Address", "Behaviour"
PANELS = (None, ADDRESS, ACCOUNT, PREFERENCES, MESSAGE, RECIPIENTS, SAFETY, WHEN, SPEED, DELIVERY, BEHAVIOUR, GLOBAL)
"""The panels of options, in the order of a page."""


def show(ctx: typer.Context) -> None:
    """Print the help page of the command that ``ctx`` belongs to."""
    from typer import rich_utils

    has_color = ctx.obj.screen(ctx.obj.stdout).color
    rich_utils.COLOR_SYSTEM = "standard" if has_color else None  # Typer has no parameter for it
    with redirect_stdout(ctx.obj.stdout):
        ctx.get_help()
