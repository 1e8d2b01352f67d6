"""`msgctl profile`: accounts, their credentials and defaults."""

from collections.abc import Callable, Mapping
from typing import Annotated, Any

import typer

from msgctl import operations as ops
from msgctl import values
from msgctl.cli import prompts, requests
from msgctl.cli.context import Context
from msgctl.cli.inputs import optional
from msgctl.cli.process import is_terminal
from msgctl.cli.tree import command, group
from msgctl.config import file as config_file
from msgctl.config import keychain, profiles
from msgctl.config.base_url import base_url_fault, without_secrets
from msgctl.config.credential import Secret
from msgctl.config.file import ConfigFile, Document
from msgctl.config.profiles import Choice
from msgctl.errors import MsgctlError, UsageError
from msgctl.output.result import OwnResult, Result, TextResult
from msgctl.text import clean
from msgctl.values import quote

app = group("Manage accounts: base URL, client and key.")

FIELDS = ("name", "default", "base_url", "client", "key")
DEFAULTS = ("country_code", "app_name", "voice", "timezone")
KEY_SOURCES = ("key", "key_command", "keyring")
SETTINGS = frozenset({"base_url", "client", "allow_http", *KEY_SOURCES, *DEFAULTS})
"""The settings that options give."""

Name = Annotated[str, typer.Argument(metavar="NAME", help="Name of the profile.")]
BaseUrl = Annotated[
    str | None, typer.Option("--base-url", metavar="URL", help="Base URL of the service; it ends in /api/v1.")
]
Client = Annotated[str | None, typer.Option("--client", metavar="N", help="Client ID of the account.")]
KeyStdin = Annotated[bool, typer.Option("--key-stdin", help="Read the key from standard input.")]
KeyCommand = Annotated[
    str | None,
    typer.Option("--key-command", metavar="CMD", help="Save a command that prints the key, instead of the key."),
]
Keyring = Annotated[bool, typer.Option("--keyring", help="Save the key in the system's keychain.")]
CountryCode = Annotated[str | None, typer.Option("--country-code", metavar="CC", help="Default for --country-code.")]
AppName = Annotated[str | None, typer.Option("--app-name", metavar="NAME", help="Default for --app-name.")]
Voice = Annotated[str | None, typer.Option("--voice", metavar="NAME", help="Default for --voice.")]
TimeZone = Annotated[str | None, typer.Option("--timezone", metavar="ZONE", help="Time zone, such as America/Bogota.")]
AllowHttp = Annotated[
    bool | None, typer.Option("--allow-http/--no-allow-http", help="Allow plain http, which exposes the key.")
]
Check = Annotated[bool, typer.Option("--check", help="Test the credentials first; save only if they work.")]


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
    base_url: BaseUrl = None,
    client: Client = None,
    key_stdin: KeyStdin = False,
    key_command: KeyCommand = None,
    keyring: Keyring = False,
    country_code: CountryCode = None,
    app_name: AppName = None,
    voice: Voice = None,
    timezone: TimeZone = None,
    allow_http: AllowHttp = None,
    check: Check = False,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing profile.")] = False,
) -> Result | None:
    """Save an account. Prompts for what is missing; the key stays hidden.

    The key cannot be an option, because every user of a machine can see the arguments of a command.
    """
    context = Context.of(ctx)
    _check_new(config_file.load(context.config_path), name, force=force)
    settings = _given(base_url, client, country_code, app_name, voice, timezone, allow_http)
    has_key = key_stdin or key_command is not None
    prompts.check_key_options(key_stdin, key_command, keyring)
    if context.options.dry_run and not check:
        raise UsageError("profile add makes no request without --check")
    if is_terminal(context.stdin):
        settings |= _ask_for_missing(context, settings)
    else:
        _refuse_missing(settings, has_key=has_key)
    settings |= prompts.read_key(context, key_stdin, key_command, keyring)
    balance = _check_account(context, name, settings) if check else None
    if context.options.dry_run:
        return balance
    with config_file.changed(context.config_path) as config:
        _check_new(config, name, force=force)
        if not config.profiles and config.default != profiles.SANDBOX:
            config.document["default_profile"] = name
        before = config.profiles.get(name, {})
        kept = {setting: value for setting, value in before.items() if setting not in SETTINGS}
        config.profiles[name] = _saved(name, kept | settings)
    _clean_keychain(name, before, settings)
    context.note(f"Saved profile {name}{' (the default)' if config.default == name else ''}")
    return balance


@command(
    app,
    "set",
    "msgctl profile set main --key-stdin < key.txt",
    "msgctl profile set main --country-code CO --timezone America/Bogota",
    effect=ops.Effect.READS,
)
def set_(
    ctx: typer.Context,
    name: Name,
    base_url: BaseUrl = None,
    client: Client = None,
    key_stdin: KeyStdin = False,
    key_command: KeyCommand = None,
    keyring: Keyring = False,
    country_code: CountryCode = None,
    app_name: AppName = None,
    voice: Voice = None,
    timezone: TimeZone = None,
    allow_http: AllowHttp = None,
    check: Check = False,
) -> Result | None:
    """Change settings of a profile, or its key. Only what you give is changed."""
    context = Context.of(ctx)
    if name == profiles.SANDBOX:
        raise _built_in()
    prompts.check_key_options(key_stdin, key_command, keyring)
    before = profiles.stored(config_file.load(context.config_path), name).settings
    if allow_http is False and base_url is None:
        base_url = before.get("base_url")  # it may not be allowed any more
    allow = before.get("allow_http") is True if allow_http is None else allow_http
    settings = _given(base_url, client, country_code, app_name, voice, timezone, allow)
    if allow_http is None:
        settings.pop("allow_http", None)
    has_key = key_stdin or key_command is not None or keyring
    keyring = keyring or (key_stdin and before.get("keyring") is True)
    if not settings and not has_key and not check:
        raise UsageError("Nothing to change: no setting was given", "msgctl profile set --help")
    if context.options.dry_run and not check:
        raise UsageError("profile set makes no request without --check")
    if has_key:
        settings |= prompts.read_key(context, key_stdin, key_command, keyring)
    balance = _check_account(context, name, _merged(before, settings)) if check else None
    if context.options.dry_run:
        return balance
    with config_file.changed(context.config_path) as config:
        before = profiles.stored(config, name).settings
        after = config.profiles[name] = _saved(name, _merged(before, settings))
    _clean_keychain(name, before, after)
    context.note(f"Changed profile {name}")
    return balance


def _merged(before: Mapping[str, Any], settings: Document) -> Document:
    """Return the settings with changes; a new key replaces the old one, even if that was stored elsewhere."""
    replaced = KEY_SOURCES if any(each in settings for each in KEY_SOURCES) else ()
    return {setting: value for setting, value in before.items() if setting not in replaced} | settings


def _given(
    base_url: str | None,
    client: str | None,
    country_code: str | None,
    app_name: str | None,
    voice: str | None,
    timezone: str | None,
    allow_http: bool | None,
) -> Document:
    """Return the settings that were given, checked. Raises UsageError."""
    settings = {
        "base_url": None if base_url is None else _base_url(base_url, allow_http=bool(allow_http)),
        "client": None if client is None else _client(client),
        "country_code": None if country_code is None else values.country_code(country_code),
        "app_name": optional(app_name, "--app-name"),
        "voice": None if voice is None else _voice(voice),
        "timezone": None if timezone is None else _time_zone(timezone),
        "allow_http": allow_http,
    }
    return {setting: value for setting, value in settings.items() if value is not None}


def _base_url(text: str, *, allow_http: bool) -> str:
    if fault := base_url_fault(text, allow_http=allow_http):
        raise UsageError(
            f"--base-url {fault}: {quote(without_secrets(text))}",
            "Use https://HOST/api/v1. Plain http is allowed to loopback addresses, or with --allow-http.",
        )
    return text


def _client(text: str) -> int:
    return values.whole_number(text, "--client", most=profiles.LARGEST_CLIENT)


def _voice(text: str) -> str:
    voices = dict.fromkeys(ops.CALL_VOICES + ops.VERIFICATION_VOICES)
    return values.choice(text, tuple(voices), "voice")


def _time_zone(text: str) -> str:
    if not profiles.is_time_zone(text):
        raise UsageError(f"Unknown time zone {quote(text)}", "Use a name such as America/Bogota.")
    return text


def _check_new(config: ConfigFile, name: str, *, force: bool) -> None:
    if fault := profiles.name_fault(name):
        raise UsageError(f"The name {quote(name)} {fault}", "Choose another name.")
    if name in config.profiles and not force:
        raise UsageError(
            f"There is already a profile {quote(name)}",
            "Change it with: msgctl profile set. Or replace it with --force.",
        )


def _ask_for_missing(context: Context, settings: Document) -> Document:
    """Ask on the terminal for what a profile needs and was not given, until it is usable. Raises Cancelled."""
    allow_http = settings.get("allow_http", False)
    questions: dict[str, tuple[str, Callable[[str], str | int]]] = {
        "base_url": ("Base URL: ", lambda text: _base_url(text, allow_http=allow_http)),
        "client": ("Client: ", _client),
    }
    answers: Document = {}
    for setting, (prompt, convert) in questions.items():
        while setting not in settings and setting not in answers:
            try:
                answers[setting] = convert(prompts.ask(context, prompt).strip())
            except UsageError as error:
                context.say(f"{error.message}. {error.hint or ''}".rstrip())
    return answers


def _refuse_missing(settings: Document, *, has_key: bool) -> None:
    """Name all required options that are missing. Raises UsageError."""
    missing = [
        option for setting, option in (("base_url", "--base-url"), ("client", "--client")) if setting not in settings
    ]
    if not has_key:
        missing.append("--key-stdin (or --key-command)")
    if missing:
        raise UsageError(
            f"Missing {'option' if len(missing) == 1 else 'options'}: {', '.join(missing)}",
            "On a terminal, msgctl asks for what is missing.",
        )


def _saved(name: str, settings: Document) -> Document:
    """Return the settings as they are saved: a key for the keychain goes there. Raises ConfigurationError."""
    if settings.get("keyring") and "key" in settings:
        keychain.save(name, Secret(settings["key"]))
        return {setting: value for setting, value in settings.items() if setting != "key"}
    return settings


def _clean_keychain(name: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> None:
    """Delete the key in the keychain if the profile does not use it any more."""
    if before.get("keyring") is True and not after.get("keyring"):
        keychain.delete(name)


def _check_account(context: Context, name: str, settings: Document) -> Result:
    """Return the balance of a profile as it would be saved. If anything goes wrong, nothing is saved."""
    if "key" in settings:
        settings = {setting: value for setting, value in settings.items() if setting != "keyring"}
    context.profile = Choice(name, "-p", settings, {}, f"profile {name}").profile()
    try:
        return requests.run(context, ops.BALANCE, {})
    except MsgctlError as error:
        error.consequence = "nothing was saved"
        raise


@command(app, "list", "msgctl profile list", "msgctl profile list --json")
def list_(ctx: typer.Context) -> Result:
    """List the profiles, without their keys."""
    context = Context.of(ctx)
    config = config_file.load(context.config_path)
    stored = {**config.profiles, profiles.SANDBOX: {}}
    return OwnResult(
        [_shown(name, settings, config.default) for name, settings in stored.items()], FIELDS, view="profiles"
    )


@command(app, "show", "msgctl profile show", "msgctl profile show main --json")
def show(
    ctx: typer.Context,
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="Name of the profile; the one in use if omitted.")
    ] = None,
) -> Result:
    """Show a profile, without its key."""
    context = Context.of(ctx)
    config = config_file.load(context.config_path)
    environ = context.environ if name is None else {}
    choice = profiles.choose(config, environ, context.options.profile if name is None else name)
    settings = {**choice.settings}
    if choice.given:
        settings["base_url"] = choice.base_url()
        settings["client"] = choice.client()
    shown = _shown(choice.name, settings, config.default)
    if "key" in choice.given:
        shown["key"] = "environment"
    more = {
        setting: settings[setting]
        for setting in ("key_command", *DEFAULTS, "allow_http", "history", "keep_days")
        if isinstance(settings.get(setting), (str, bool, int))
    }
    return OwnResult({**shown, **more}, [*FIELDS, *more], view="profile")


@command(app, "use", "msgctl profile use main")
def use(ctx: typer.Context, name: Name) -> None:
    """Make a profile the default."""
    context = Context.of(ctx)
    with config_file.changed(context.config_path) as config:
        if name != profiles.SANDBOX:
            profiles.stored(config, name)
        config.document["default_profile"] = name
    context.note(f"{name} is now the default profile")


@command(app, "remove", "msgctl profile remove main", "msgctl profile remove main --yes")
def remove(ctx: typer.Context, name: Name) -> None:
    """Remove a profile and its key."""
    context = Context.of(ctx)
    if name == profiles.SANDBOX:
        raise _built_in()
    profiles.stored(config_file.load(context.config_path), name)
    prompts.confirm(context, f"Remove profile {name} and its key?")
    with config_file.changed(context.config_path) as config:
        removed = profiles.stored(config, name).settings
        del config.profiles[name]
        default = _new_default(config, name)
    _clean_keychain(name, removed, {})
    context.note(f"Removed profile {name}{default}")


def _new_default(config: ConfigFile, removed: str) -> str:
    """Choose the default after a removal, and return what to say about it."""
    if config.default == profiles.SANDBOX:
        return ""
    if len(config.profiles) == 1:
        (only,) = config.profiles
        if config.default == only:
            return ""
        config.document["default_profile"] = only
        return f". {only} is now the default profile."
    if config.default != removed:
        return ""
    del config.document["default_profile"]
    return ". No default profile is set."


def _built_in() -> UsageError:
    return UsageError("The sandbox profile is built in and cannot be changed", "Empty it with: msgctl sandbox reset")


@command(app, "path", "msgctl profile path", 'chmod 600 "$(msgctl profile path)"')
def path(ctx: typer.Context) -> Result:
    """Print the path of the configuration file."""
    path = str(Context.of(ctx).config_path)
    return TextResult(f"{clean(path)}\n", {"path": path})


def _shown(name: str, settings: Document, default: str | None) -> dict[str, Any]:
    """Return a profile without its key, but with where the key is."""
    if name == profiles.SANDBOX:
        settings = {"base_url": profiles.SANDBOX_URL, "client": profiles.SANDBOX_CLIENT}
        key = "built in"
    else:
        sources = {"key": "stored", "key_command": "command", "keyring": "keychain"}
        key = next((shown for setting, shown in sources.items() if settings.get(setting)), "missing")
    base_url, client = settings.get("base_url"), settings.get("client")
    if not isinstance(base_url, str):
        base_url = None
    elif base_url_fault(base_url, allow_http=True):
        base_url = "cannot be used"  # it may contain a password, or the key
    return {
        "name": name,
        "default": name == default,
        "base_url": base_url,
        "client": client if isinstance(client, int) else None,
        "key": key,
    }
