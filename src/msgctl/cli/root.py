"""What stands at the top of the command tree. Each part is loaded when it is asked for: a run needs one of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any, NamedTuple

import typer

from msgctl.cli.tree import Group, command, group

SEND, VERIFY, LOOK, ACCOUNT, TEST = "Send", "Verify", "Look", "Account", "Test"


class Part(NamedTuple):
    """A group, or a command of its own: its heading in the help, its name, its module in `msgctl.cli`, its one line."""

    panel: str
    name: str
    module: str
    help: str


PARTS = (
    Part(SEND, "sms", "sms", "SMS text messages."),
    Part(SEND, "call", "call", "Voice calls."),
    Part(SEND, "chatapp", "chatapp", "Chat-app messages from templates."),
    Part(SEND, "job", "job", "Bulk sends: how they stand, and how they go on."),
    Part(VERIFY, "2fa", "twofa", "Verification codes by SMS, call and chat app."),
    Part(LOOK, "state", "message_state", "Delivery states of SMS and calls."),
    Part(LOOK, "url", "url", "Short URLs and their clicks."),
    Part(LOOK, "history", "history", "What was sent from this machine, and what came of it."),
    Part(ACCOUNT, "balance", "balance", "Credits left in the account."),
    Part(ACCOUNT, "block", "block", "Numbers that get no message any more."),
    Part(ACCOUNT, "optout", "optout", "People who must not get your messages."),
    Part(ACCOUNT, "profile", "profile", "Stored accounts: base URL, client and key."),
    Part(ACCOUNT, "doctor", "doctor", "Find out why it does not work, and say what to mend."),
    Part(ACCOUNT, "api", "api", "Make any request, with the credentials of the profile."),
    Part(ACCOUNT, "completion", "completion", "Print the script by which a shell completes msgctl."),
    Part(TEST, "sandbox", "sandbox", "An emulator of the service on this machine."),
)


class Root(Group):
    """The tree itself. Its help page is known without loading any part of it."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands = _Children()  # type: ignore[assignment]

    def listing(self, ctx: Any) -> Iterator[tuple[str | None, str, str]]:  # noqa: ARG002
        return ((part.panel, part.name, part.help) for part in PARTS)


class _Children(Mapping[str, Any]):
    """The groups and commands by their names, each made at its first use."""

    def __init__(self) -> None:
        self._parts = {part.name: part for part in PARTS}
        self._made: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._made:
            self._made[name] = _load(self._parts[name])
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._parts)

    def __len__(self) -> int:
        return len(self._parts)


def _load(part: Part) -> Any:
    module = import_module(f"msgctl.cli.{part.module}")
    holder = group("")
    owner = getattr(module, "app", None)
    if owner is not None:
        holder.add_typer(owner, name=part.name, rich_help_panel=part.panel)
    else:
        command(holder, part.name, *module.EXAMPLES, panel=part.panel)(getattr(module, part.name))
    tree: Any = typer.main.get_command(holder)
    return tree.commands[part.name]
