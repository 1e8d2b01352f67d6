"""`msgctl profile`: stored credentials."""

import getpass
import warnings
from collections.abc import Mapping
from typing import Annotated, Any

import typer

from msgctl import operations as ops
from msgctl import values
from msgctl.cli.context import Context
from msgctl.cli.inputs import optional, read_line
from msgctl.cli.terminal import echo_kept_off, is_terminal
from msgctl.cli.tree import command, group
from msgctl.config import file as config
from msgctl.config import profiles
from msgctl.config.base_url import base_url_fault, without_secrets
from msgctl.config.file import Document
from msgctl.errors import Cancelled, MsgctlError, UsageError
from msgctl.values import quote

app = group("Stored accounts: base URL, client and key.")

COLUMNS = ("name", "default", "base_url", "client", "key")
DEFAULTS = ("country_code", "app_name", "voice")
MEMBERS = frozenset({"base_url", "client", "key", "key_command", "allow_http", *DEFAULTS})

Name = Annotated[str, typer.Argument(metavar="NAME", help="Name of the profile.")]


@command(
    app,
    "add",
    "msgctl profile add main --base-url https://service.example/api/v1 --client 12345",
    "msgctl profile add main --base-url https://service.example/api/v1 --client 12345 --key-stdin < key.txt",
    "msgctl profile add main --base-url https://service.example/api/v1 --client 12345 --key-command 'pass show sms'",
    performs=ops.BALANCE,
)
def add(
    ctx: typer.Context,
    name: Name,
    base_url: Annotated[
        str, typer.Option("--base-url", metavar="URL", help="Where the service is; it ends in /api/v1.")
    ],
    client: Annotated[str, typer.Option("--client", metavar="N", help="Client identifier of the account.")],
    key_stdin: Annotated[bool, typer.Option("--key-stdin", help="Read the key from standard input.")] = False,
    key_command: Annotated[
        str | None,
        typer.Option("--key-command", metavar="CMD", help="Store a command that prints the key, not the key."),
    ] = None,
    country_code: Annotated[
        str | None, typer.Option("--country-code", metavar="CC", help="Default for --country-code.")
    ] = None,
    app_name: Annotated[str | None, typer.Option("--app-name", metavar="NAME", help="Default for --app-name.")] = None,
    voice: Annotated[str | None, typer.Option("--voice", metavar="NAME", help="Default for --voice.")] = None,
    allow_http: Annotated[
        bool, typer.Option("--allow-http", help="Allow plain http, which shows the key to the network.")
    ] = False,
    check: Annotated[bool, typer.Option("--check", help="Ask for the balance first; store only if it comes.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace a profile of the same name.")] = False,
) -> None:
    """Store an account; ask for its key, and do not show it.

    There is no option for the key: every user of a machine can read the arguments of a command.
    """
    context = Context.of(ctx)
    members: Document = {
        "base_url": _base_url(base_url, allow_http=allow_http),
        "client": values.whole_number(client, "--client", most=profiles.LARGEST_CLIENT),
        "country_code": None if country_code is None else values.country_code(country_code),
        "app_name": optional(app_name, "--app-name"),
        "voice": None if voice is None else _voice(voice),
        "allow_http": allow_http or None,
    }
    _check_name(context, name, force=force)
    if not check:
        context.refuse_dry_run("profile add")
    members |= _key(context, key_stdin=key_stdin, key_command=key_command)
    members = {member: value for member, value in members.items() if value is not None}
    if check:
        _check_account(context, name, members)
    if not context.options.dry_run:
        _store(context, name, members, force=force)


def _store(context: Context, name: str, members: Document, *, force: bool) -> None:
    with config.changed(context.config_path) as document:
        stored = config.profiles(document)
        if name in stored and not force:
            raise _exists(name)
        if not stored and document.get("default_profile") != profiles.SANDBOX:
            document["default_profile"] = name
        stored[name] = _unknown(stored.get(name, {})) | members
        is_default = document.get("default_profile") == name
    context.note(f"stored profile {name}{' as the default' if is_default else ''}")


def _unknown(members: Document) -> Document:
    """What a profile holds that no option gives, and is kept when the profile is replaced."""
    return {member: value for member, value in members.items() if member not in MEMBERS}


def _base_url(text: str, *, allow_http: bool) -> str:
    if fault := base_url_fault(text, allow_http=allow_http):
        raise UsageError(
            f"{quote(without_secrets(text))} cannot be a base URL: {fault}",
            "Allowed is https://HOST/api/v1, and plain http to a loopback address or with --allow-http.",
        )
    return text


def _voice(text: str) -> str:
    voices = dict.fromkeys(ops.CALL_VOICES + ops.VERIFICATION_VOICES)
    return values.choice(text, tuple(voices), "voice")


def _check_name(context: Context, name: str, *, force: bool) -> None:
    """Find out about the name, and whether the file can be read, before a key is asked for."""
    if fault := profiles.name_fault(name):
        raise UsageError(f"{quote(name)} cannot be the name of a profile: {fault}", "Choose another name.")
    stored = config.load(context.config_path).get("profiles", {})
    if name in stored and not force:
        raise _exists(name)


def _exists(name: str) -> UsageError:
    return UsageError(f"there is a profile '{name}' already", "Choose another name, or replace it with --force.")


def _key(context: Context, *, key_stdin: bool, key_command: str | None) -> Document:
    if key_command is not None:
        if key_stdin:
            raise UsageError("--key-stdin and --key-command exclude each other", "Give one of them.")
        return {"key_command": values.words(key_command, "--key-command")}
    if is_terminal(context.stdin):  # also with --key-stdin: what is typed there would be seen
        key = _ask_for_key()
    elif key_stdin:
        key = read_line(context, profiles.LONGEST_KEY * 4, "the key")
    else:
        raise UsageError(
            "there is no terminal to ask for the key", "Give it with --key-stdin, or store a --key-command."
        )
    if fault := profiles.key_fault(key):
        raise UsageError(f"the key cannot be used: {fault}", profiles.WHERE_THE_KEY_IS)
    return {"key": key}


def _ask_for_key() -> str:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", getpass.GetPassWarning)
            with echo_kept_off():
                return getpass.getpass("Key: ")
    except EOFError:
        raise Cancelled("no key was given", consequence="nothing was stored") from None
    except UnicodeDecodeError:
        raise UsageError("the key cannot be used: it is not UTF-8 text", profiles.WHERE_THE_KEY_IS) from None
    except getpass.GetPassWarning:
        raise UsageError(
            "this terminal would show the key", "Give it with --key-stdin, or store a --key-command."
        ) from None


def _check_account(context: Context, name: str, members: Document) -> None:
    """Ask for the balance with the profile as it would be stored; whatever goes wrong, nothing is stored."""
    context.profile = profiles.made_of(name, members)
    try:
        context.run(ops.BALANCE, {})
    except MsgctlError as error:
        error.what, error.consequence = error.message, "the profile was not stored"
        raise


@command(app, "list", "msgctl profile list", "msgctl profile list --json")
def list_(ctx: typer.Context) -> None:
    """List the profiles, without their keys."""
    context = Context.of(ctx)
    document = config.load(context.config_path)
    stored = {**document.get("profiles", {}), profiles.SANDBOX: _sandbox()}
    default = document.get("default_profile")
    context.show([_listed(name, members, default) for name, members in stored.items()], COLUMNS)


@command(app, "show", "msgctl profile show", "msgctl profile show main --json")
def show(
    ctx: typer.Context,
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="Name of the profile; the one in use if left out.")
    ] = None,
) -> None:
    """Show a profile, without its key."""
    context = Context.of(ctx)
    document = config.load(context.config_path)
    chosen = context.options.profile if name is None else name
    from_environment = False
    if chosen is None:
        chosen, members = profiles.in_use(document, context.environ)
        from_environment = chosen != profiles.SANDBOX and bool(context.environ.get("MSGCTL_KEY"))
    elif chosen != profiles.SANDBOX:
        members = profiles.stored(document, chosen)
    if chosen == profiles.SANDBOX:
        members = _sandbox()
    shown = _listed(chosen, members, document.get("default_profile"))
    if from_environment:
        shown["key"] = "environment"
    more = {
        member: members[member]
        for member in ("key_command", *DEFAULTS, "allow_http", "history")
        if isinstance(members.get(member), (str, bool))
    }
    context.show({**shown, **more}, [*COLUMNS, *more])


@command(app, "use", "msgctl profile use main")
def use(ctx: typer.Context, name: Name) -> None:
    """Make a profile the default."""
    context = Context.of(ctx)
    context.refuse_dry_run("profile use")
    with config.changed(context.config_path) as document:
        if name != profiles.SANDBOX:
            profiles.stored(document, name)
        document["default_profile"] = name
    context.note(f"{name} is the default profile now")


@command(app, "remove", "msgctl profile remove main", "msgctl profile remove main --yes")
def remove(ctx: typer.Context, name: Name) -> None:
    """Remove a profile and its key."""
    context = Context.of(ctx)
    context.refuse_dry_run("profile remove")
    if name == profiles.SANDBOX:
        raise UsageError("the profile 'sandbox' is built in and always there", "Empty it with: msgctl sandbox reset")
    profiles.stored(config.load(context.config_path), name)
    context.confirm(f"Remove profile {name} and its key?")
    with config.changed(context.config_path) as document:
        profiles.stored(document, name)
        del config.profiles(document)[name]
        was_default = document.get("default_profile") == name
        if was_default:
            del document["default_profile"]
    context.note(f"removed profile {name}{'; there is no default now' if was_default else ''}")


@command(app, "path", "msgctl profile path", 'chmod 600 "$(msgctl profile path)"')
def path(ctx: typer.Context) -> None:
    """Print where the profiles are stored."""
    context = Context.of(ctx)
    context.check_own_fields(("path",))
    context.printer.value("path", str(context.config_path))


def _sandbox() -> Mapping[str, Any]:
    return {"base_url": profiles.SANDBOX_URL, "client": profiles.SANDBOX_CLIENT, "key": profiles.SANDBOX_KEY}


def _listed(name: str, members: Mapping[str, Any], default: str | None) -> dict[str, Any]:
    """A profile as it is shown; of the key only whether there is one."""
    key = "stored" if members.get("key") else "command" if members.get("key_command") else "missing"
    base_url, client = members.get("base_url"), members.get("client")
    return {
        "name": name,
        "default": name == default,
        "base_url": _usable(base_url),
        "client": client if isinstance(client, int) else None,
        "key": "built in" if name == profiles.SANDBOX else key,
    }


def _usable(base_url: object) -> str | None:
    """A base URL as it is shown: one that cannot be used may hold a password, or the key."""
    if not isinstance(base_url, str):
        return None
    return "cannot be used" if base_url_fault(base_url, allow_http=True) else base_url
