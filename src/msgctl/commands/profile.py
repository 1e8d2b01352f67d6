"""`msgctl profile`: accounts, their credentials and defaults."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Annotated, Any

import typer

from msgctl import operations as ops
from msgctl import values
from msgctl.cli import prompts
from msgctl.cli.completion import profile_names
from msgctl.cli.context import Context
from msgctl.cli.help import ACCOUNT, PREFERENCES, SAFETY
from msgctl.cli.option_group import OptionGroup
from msgctl.cli.parsers import Choice, parser, text_option
from msgctl.cli.send import run
from msgctl.cli.tree import command, group
from msgctl.config import credential, profiles
from msgctl.config import file as config_file
from msgctl.config.file import ConfigFile, Document
from msgctl.config.profiles import KEY_SOURCES, Profile, base_url_fault, origin, without_secrets
from msgctl.errors import MsgctlError, UsageError
from msgctl.http.request import build
from msgctl.output.result import OwnResult, Result, TextResult
from msgctl.text import clean
from msgctl.values import quote

app = group("Manage accounts: base URL, client and key.")

PROFILE_FIELDS = ("name", "default", "base_url", "client", "key")
DEFAULTS = ("country_code", "app_name", "voice", "timezone")
SETTINGS = frozenset({"base_url", "client", "allow_http", *KEY_SOURCES, *DEFAULTS})
"""The settings with an option."""
OPTIONAL_FIELDS = ("key_command", *DEFAULTS, "allow_http", "history", "keep_days", "words")
"""Settings that are shown only if the profile has them."""

_VOICE = Choice(tuple(dict.fromkeys(ops.CALL_VOICES + ops.VERIFICATION_VOICES)), "voice")


def _time_zone(text: str) -> str:
    if not profiles.is_time_zone(text):
        raise UsageError(f"Unknown time zone {quote(text)}", "Use a name such as America/Bogota.")
    return text


Name = Annotated[str, typer.Argument(metavar="NAME", help="Name of the profile.", autocompletion=profile_names)]


class Settings(OptionGroup):
    """The settings of a profile that `profile add` and `profile set` take."""

    base_url: Annotated[
        str | None,
        typer.Option(
            "--base-url", metavar="URL", help="Base URL of the service; it ends in /api/v1.", rich_help_panel=ACCOUNT
        ),
    ] = None
    client: Annotated[
        int | None,
        typer.Option(
            "--client",
            metavar="N",
            help="Client ID of the account.",
            parser=parser(values.client),
            rich_help_panel=ACCOUNT,
        ),
    ] = None
    key_stdin: Annotated[
        bool, typer.Option("--key-stdin", help="Read the key from standard input.", rich_help_panel=ACCOUNT)
    ] = False
    key_command: Annotated[
        str | None,
        text_option("--key-command", "CMD", "Save a command that prints the key, instead of the key.", panel=ACCOUNT),
    ] = None
    keyring: Annotated[
        bool, typer.Option("--keyring", help="Save the key in the system's keychain.", rich_help_panel=ACCOUNT)
    ] = False
    country_code: Annotated[
        str | None,
        typer.Option(
            "--country-code",
            metavar="CC",
            help="Default for --country-code.",
            parser=parser(values.country_code),
            rich_help_panel=PREFERENCES,
        ),
    ] = None
    app_name: Annotated[str | None, text_option("--app-name", "NAME", "Default for --app-name.", panel=PREFERENCES)] = (
        None
    )
    voice: Annotated[
        str | None,
        typer.Option(
            "--voice",
            metavar="NAME",
            help="Default for --voice.",
            parser=_VOICE,
            autocompletion=_VOICE.complete,
            rich_help_panel=PREFERENCES,
        ),
    ] = None
    timezone: Annotated[
        str | None,
        typer.Option(
            "--timezone",
            metavar="ZONE",
            help="Time zone for jobs, such as America/Bogota.",
            parser=parser(_time_zone),
            rich_help_panel=PREFERENCES,
        ),
    ] = None
    allow_http: Annotated[
        bool | None,
        typer.Option(
            "--allow-http/--no-allow-http", help="Allow plain http, which exposes the key.", rich_help_panel=SAFETY
        ),
    ] = None
    check: Annotated[
        bool,
        typer.Option("--check", help="Test the credentials first; save only if they work.", rich_help_panel=SAFETY),
    ] = False

    def given(self, before: Mapping[str, Any]) -> Document:
        """Return the checked settings except the key, for a profile with settings ``before``. Raises UsageError."""
        if self.key_command is not None and (self.key_stdin or self.keyring):
            other = "--key-stdin" if self.key_stdin else "--keyring"
            raise UsageError(f"Use either --key-command or {other}, not both")
        given = {
            "base_url": self.base_url,
            "client": self.client,
            "country_code": self.country_code,
            "app_name": self.app_name,
            "voice": self.voice,
            "timezone": self.timezone,
            "allow_http": self.allow_http,
        }
        settings = {setting: value for setting, value in given.items() if value is not None}
        after = {**before, **settings}
        if "base_url" in after and not {"base_url", "allow_http"}.isdisjoint(settings):
            _base_url(after["base_url"], allow_http=after.get("allow_http") is True)
        return settings

    @property
    def has_key(self) -> bool:
        return self.key_stdin or self.key_command is not None

    def key(self, context: Context, *, keyring: bool = False) -> Document:
        """Read the key or ask for it, and return its settings. Raises UsageError and Cancelled.

        A key for the keychain is also under ``key`` until it is saved.
        """
        if self.key_command is not None:
            return {"key_command": self.key_command}
        key = {"key": prompts.read_key(context, from_stdin=self.key_stdin)}
        if len(key["key"]) < profiles.MIN_KEY:
            context.warn(profiles.SHORT_KEY)
        return {**key, "keyring": True} if self.keyring or keyring else key

    def save(self, context: Context, name: str, changed: Callable[[ConfigFile], Document], note: str) -> Result | None:
        """Save the settings that ``changed`` returns as a profile; with --check, only if the service accepts them."""
        balance = None
        if self.check:
            balance = _check_account(context, name, changed(config_file.load(context.config_path)))
        if context.options.dry_run:
            return balance
        with config_file.changed(context.config_path) as config:
            before = config.profiles.get(name, {})
            after = config.profiles[name] = changed(config)
            if after.get("keyring") and "key" in after:
                credential.save_in_keychain(name, origin(after.get("base_url")), after.pop("key"))
        _clean_keychain(name, before, after)
        context.note(f"{note} profile {name}{' (the default)' if config.default == name else ''}")
        return balance


@command(
    app,
    "add",
    "msgctl profile add main --base-url https://sms.example/api/v1 --client 12345",
    performs=ops.BALANCE,
)
def add(
    context: Context,
    name: Name,
    *,
    options: Settings,
    force: Annotated[
        bool, typer.Option("--force", help="Replace an existing profile.", rich_help_panel=SAFETY)
    ] = False,
) -> Result | None:
    """Save an account. Prompts for what is missing; the key stays hidden.

    The key cannot be an option, because every user of a machine can see the arguments of a command.
    """
    _check_new(config_file.load(context.config_path), name, force=force)
    settings = options.given({})
    if context.options.dry_run and not options.check:
        raise UsageError("profile add makes no request without --check")
    if context.stdin.isatty():
        _ask_for_missing(context, settings)
    else:
        _refuse_missing(settings, has_key=options.has_key)
    settings |= options.key(context)

    def added(config: ConfigFile) -> Document:
        _check_new(config, name, force=force)
        before = config.profiles.pop(name, {})
        if not config.profiles and config.default != profiles.SANDBOX:
            config.document["default_profile"] = name
        return {setting: value for setting, value in before.items() if setting not in SETTINGS} | settings

    return options.save(context, name, added, "Saved")


@command(
    app,
    "set",
    "msgctl profile set main --key-stdin < key.txt",
    "msgctl profile set main --country-code CO --timezone America/Bogota",
    effect=ops.Effect.READS,
)
def set_(context: Context, name: Name, *, options: Settings) -> Result | None:
    """Change settings of a profile, or its key. Only what you give is changed."""
    _refuse_sandbox(name)
    before = profiles.stored(config_file.load(context.config_path), name).settings
    settings = options.given(before)
    has_key = options.has_key or options.keyring
    if not settings and not has_key and not options.check:
        raise UsageError("Nothing to change: no setting was given", "msgctl profile set --help")
    if context.options.dry_run and not options.check:
        raise UsageError("profile set makes no request without --check")
    if has_key:
        settings |= options.key(context, keyring=before.get("keyring") is True)
    replaced = KEY_SOURCES if has_key else ()

    def changed(config: ConfigFile) -> Document:
        stored = profiles.stored(config, name).settings
        after = {setting: value for setting, value in stored.items() if setting not in replaced} | settings
        address = origin(stored.get("base_url"))
        if after.get("keyring") and "key" not in after and address not in (None, origin(after.get("base_url"))):
            raise UsageError(
                f"The key of profile {name} in the keychain is for {address}",
                "Add --keyring, and enter the key for the new address.",
            )
        return after

    return options.save(context, name, changed, "Changed")


def _base_url(text: str, *, allow_http: bool) -> str:
    if fault := base_url_fault(text, allow_http=allow_http):
        raise UsageError(
            f"--base-url {fault}: {quote(without_secrets(text))}",
            "Use https://HOST/api/v1. Plain http is allowed for loopback addresses, or with --allow-http.",
        )
    return text


def _check_new(config: ConfigFile, name: str, *, force: bool) -> None:
    if fault := profiles.name_fault(name):
        raise UsageError(f"The name {quote(name)} {fault}", "Choose another name.")
    if name in config.profiles and not force:
        raise UsageError(
            f"There is already a profile {quote(name)}",
            "Change it with: msgctl profile set. Or replace it with --force.",
        )


def _ask_for_missing(context: Context, settings: Document) -> None:
    """Ask on the terminal for missing settings until the profile is usable. Raises Cancelled."""
    base_url = partial(_base_url, allow_http=settings.get("allow_http", False))
    questions: dict[str, Callable[[str], str | int]] = {"Base URL": base_url, "Client": values.client}
    for question, convert in questions.items():
        setting = question.lower().replace(" ", "_")
        while setting not in settings:
            try:
                settings[setting] = convert(prompts.ask(context, f"{question}: ").strip())
            except UsageError as error:
                context.say(f"{error.message}. {error.hint or ''}".rstrip())


def _refuse_missing(settings: Document, *, has_key: bool) -> None:
    """Raise UsageError if required options are missing; the error lists them all."""
    required = {"--base-url": "base_url" in settings, "--client": "client" in settings}
    required["--key-stdin (or --key-command)"] = has_key
    if missing := [option for option, is_given in required.items() if not is_given]:
        raise UsageError(
            f"Missing {'option' if len(missing) == 1 else 'options'}: {', '.join(missing)}",
            "On a terminal, msgctl asks for what is missing.",
        )


def _clean_keychain(name: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> None:
    """Delete the key in the keychain if the profile no longer uses it."""
    address = origin(before.get("base_url"))
    if before.get("keyring") is True and not (after.get("keyring") and address == origin(after.get("base_url"))):
        credential.delete_from_keychain(name, address)


def _check_account(context: Context, name: str, settings: Document) -> Result:
    """Return the balance, requested with the unsaved profile. After an error, nothing is saved."""
    if "key" in settings:
        settings = {setting: value for setting, value in settings.items() if setting != "keyring"}
    context.profile = Profile(name, "-p", settings, (), f"profile {name}").checked()
    try:
        return run(context, build(ops.BALANCE, {}))
    except MsgctlError as error:
        raise error.replaced(consequence="nothing was saved") from None


@command(app, "list", "msgctl profile list", "msgctl profile list --json", output=PROFILE_FIELDS)
def list_(context: Context) -> Result:
    """List the profiles, without their keys."""
    context.check_fields(PROFILE_FIELDS)
    config = config_file.load(context.config_path)
    found = [profiles.stored(config, name) for name in config.profiles if name != profiles.SANDBOX]
    return OwnResult([_shown(each, config) for each in (*found, profiles.THE_SANDBOX)], PROFILE_FIELDS, view="profiles")


@command(app, "show", "msgctl profile show", "msgctl profile show main --json", output=PROFILE_FIELDS)
def show(
    context: Context,
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[NAME]", help="Name of the profile; the one in use if omitted.", autocompletion=profile_names
        ),
    ] = None,
) -> Result:
    """Show a profile, without its key."""
    context.check_fields((*PROFILE_FIELDS, *OPTIONAL_FIELDS))
    config = config_file.load(context.config_path)
    environ = context.environ if name is None else {}
    profile = profiles.choose(config, environ, context.options.profile if name is None else name)
    more = {
        setting: profile.settings[setting]
        for setting in OPTIONAL_FIELDS
        if isinstance(value := profile.settings.get(setting), (str, bool, int)) or profiles.are_words(value)
    }
    return OwnResult({**_shown(profile, config), **more}, [*PROFILE_FIELDS, *more], view="profile")


@command(app, "use", "msgctl profile use main")
def use(context: Context, name: Name) -> None:
    """Make a profile the default."""
    with config_file.changed(context.config_path) as config:
        if name != profiles.SANDBOX:
            profiles.stored(config, name)
        config.document["default_profile"] = name
    context.note(f"{name} is now the default profile")


@command(app, "remove", "msgctl profile remove main", "msgctl profile remove main --yes", asks=True)
def remove(context: Context, name: Name) -> None:
    """Remove a profile and its key."""
    _refuse_sandbox(name)
    profiles.stored(config_file.load(context.config_path), name)
    prompts.confirm(context, f"Remove profile {name} and its key?")
    with config_file.changed(context.config_path) as config:
        removed = profiles.stored(config, name).settings
        del config.profiles[name]
        default = _new_default(config, name)
    _clean_keychain(name, removed, {})
    context.note(f"Removed profile {name}{default}")


def _new_default(config: ConfigFile, removed: str) -> str:
    """Choose the default after a removal, and return the sentence about it."""
    if len(config.profiles) == 1 and config.default not in (profiles.SANDBOX, *config.profiles):
        config.document["default_profile"] = next(iter(config.profiles))
        return f". {config.default} is now the default profile."
    if config.default != removed:
        return ""
    del config.document["default_profile"]
    return ". No default profile is set."


def _refuse_sandbox(name: str) -> None:
    if name == profiles.SANDBOX:
        raise UsageError("The sandbox profile is built in and cannot be changed", "Empty it with: msgctl sandbox reset")


@command(app, "path", "msgctl profile path", 'chmod 600 "$(msgctl profile path)"')
def path(context: Context) -> Result:
    """Print the path of the configuration file."""
    context.check_fields(())
    path = str(context.config_path)
    return TextResult(f"{clean(path)}\n", {"path": path})


_KEYS = {"key": "stored", "key_command": "command", "keyring": "keychain"}


def _shown(profile: Profile, config: ConfigFile) -> dict[str, Any]:
    """Return a profile with the source of its key instead of the key."""
    base_url, client = profile.settings.get("base_url"), profile.settings.get("client")
    key = next((shown for setting, shown in _KEYS.items() if profile.settings.get(setting)), "missing")
    if isinstance(base_url, str) and base_url_fault(base_url, allow_http=True):
        base_url = "cannot be used"  # it may contain a password, or the key
    return {
        "name": profile.name,
        "default": profile.name == config.default,
        "base_url": base_url if isinstance(base_url, str) else None,
        "client": client if isinstance(client, int) else None,
        "key": "built in" if profile.is_sandbox else "environment" if "key" in profile.given else key,
    }
