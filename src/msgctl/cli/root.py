"""Lazy registry of command groups: each module is loaded when its group is used."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any, NamedTuple

import typer

from msgctl.cli.tree import Group, command, group

SEND, VERIFY, TRACK, ACCOUNT, HELP, TEST = "Send", "Verify", "Track", "Account", "Help", "Test"


class Part(NamedTuple):
    """A group or a single command: its heading in the help, name, module in `msgctl.cli`, and one line of help."""

    panel: str
    name: str
    module: str
    help: str


PARTS = (
    Part(SEND, "sms", "sms", "Send text messages."),
    Part(SEND, "call", "call", "Make voice calls."),
    Part(SEND, "chatapp", "chatapp", "Send chat-app messages from templates."),
    Part(SEND, "job", "job", "Check, resume and report on bulk sends."),
    Part(VERIFY, "2fa", "twofa", "Send and verify codes by SMS, call or chat app."),
    Part(TRACK, "state", "message_state", "Check the delivery state of SMS and calls."),
    Part(TRACK, "url", "url", "Create short URLs and count their clicks."),
    Part(TRACK, "history", "history", "Messages sent from this machine, and their results."),
    Part(ACCOUNT, "balance", "balance", "Show the credits left in the account."),
    Part(ACCOUNT, "block", "block", "Block numbers from receiving messages."),
    Part(ACCOUNT, "optout", "optout", "Manage numbers that must not get your messages."),
    Part(ACCOUNT, "profile", "profile", "Manage stored accounts: base URL, client and key."),
    Part(ACCOUNT, "api", "api", "Make any request with the profile's credentials."),
    Part(TEST, "sandbox", "sandbox", "Test with an emulator of the service on this machine."),
    Part(HELP, "doctor", "doctor", "Diagnose problems and suggest fixes."),
    Part(HELP, "commands", "commands", "Describe every command, also as JSON for programs."),
    Part(HELP, "completion", "completion", "Print the shell completion script."),
    Part(HELP, "help", "help", "Show help for a command."),
    Part(HELP, "version", "version", "Show the version."),
)


class Root(Group):
    """The root of the command tree. Its help needs no other module."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands = _Children()  # type: ignore[assignment]

    def listing(self, ctx: Any) -> Iterator[tuple[str | None, str, str]]:  # noqa: ARG002
        return ((part.panel, part.name, part.help) for part in PARTS)


class _Children(Mapping[str, Any]):
    """Groups and commands by name, each created at its first use."""

    def __init__(self) -> None:
        self._parts = {part.name: part for part in PARTS}
        self._loaded: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._loaded:
            self._loaded[name] = _load(self._parts[name])
        return self._loaded[name]

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
