"""`msgctl profile`: accounts, their credentials and defaults."""

import shlex
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from msgctl import files, values
from msgctl import operations as ops
from msgctl.cli.options.profile import AccountOptions, Preferences, checked_base_url
from msgctl.cli.options.send import COUNTRY_VARIABLE
from msgctl.cli.runs.single import dry_run, perform
from msgctl.cli.shell import prompts
from msgctl.cli.shell.completion import profile_names
from msgctl.cli.shell.context import MAX_CHECK, Context
from msgctl.cli.shell.options import SAFETY
from msgctl.cli.shell.tree import command, group
from msgctl.config import file as config_file
from msgctl.config import profiles
from msgctl.config.file import ConfigFile, TomlTable
from msgctl.config.profiles import KEY_SOURCES, StoredProfile
from msgctl.config.urls import base_url_fault, has_password, location_of, resolved, store_shown, without_password
from msgctl.errors import STORE_ERRORS, MissingStoreError, MsgctlError, UsageError
from msgctl.http.request import build
from msgctl.output.result import Layout, OwnResult, Result, TextResult
from msgctl.text import clean, plural
from msgctl.values import quote

if TYPE_CHECKING:
    from msgctl.store.move import Contents

app = group("Manage accounts: base URL, client and key.")

PROFILE_FIELDS = ("name", "default", "base_url", "client", "key")
SHOWN_FIELDS = ("setting", "value", "source")
STORE_VARIABLE = "MSGCTL_STORE"

Name = Annotated[str, typer.Argument(metavar="NAME", help="Name of the profile.", autocompletion=profile_names)]


@command(
    app,
    "add",
    "msgctl profile add main --base-url https://sms.example/api/v1 --client 12345",
    performs=ops.BALANCE,
    output=(),
    json="object",
)
def add(
    context: Context,
    name: Name,
    *,
    options: AccountOptions,
    check: Annotated[
        bool, typer.Option("--check", help="Request the balance first; save only if it works.", rich_help_panel=SAFETY)
    ] = False,
    force: Annotated[
        bool,
        typer.Option(
            "--force",
            help="Replace the account of an existing profile. Its other settings stay.",
            rich_help_panel=SAFETY,
        ),
    ] = False,
) -> Result | None:
    """Save an account. It prompts for missing values and does not show the key. No option accepts the key, because
    every user of a machine can see the arguments of a command.
    """
    _check_new(context.config, name, force=force)
    settings = options.settings(allow_http=False)
    if context.options.dry_run and not check:
        raise UsageError("profile add makes no request without --check")
    if context.stdin.isatty():
        _ask_for_missing(context, settings)
    else:
        _refuse_missing(settings, has_key=options.has_key)
    settings |= options.key(context)
    if check:
        balance = _check_account(context, name, settings)
        if context.options.dry_run:
            return balance
    with _changed_file(context) as config:
        _check_new(config, name, force=force)
        before = config.profiles.pop(name, {})
        if not config.profiles and config.default != profiles.SANDBOX:
            config.document["default_profile"] = name
        replaced = (*KEY_SOURCES, "allow_http")  # it was for the earlier base URL
        kept = {setting: value for setting, value in before.items() if setting not in replaced}
        config.profiles[name] = kept | settings
    return _changed(context, config, name, "Saved")


@command(
    app,
    "set",
    "msgctl profile set main --key-stdin < key.txt",
    "msgctl profile set main --country-code CO --timezone America/Bogota",
    "msgctl profile set main --word 'delivered=RECEIVED'",
)
def set_(context: Context, name: Name, *, options: AccountOptions, preferences: Preferences) -> Result:
    """Change settings of a profile, or its key. Settings that you omit stay the same."""
    _refuse_sandbox(name)
    stored = profiles.stored(context.config, name)
    settings = options.settings(allow_http=stored.settings.get("allow_http") is True) | preferences.settings()
    if not (settings or options.has_key or preferences.word):
        raise UsageError("Nothing to change: no setting was given", "msgctl profile set --help")
    if has_password(settings.get("store", "")):
        context.warn(
            "The URL of the store contains a password, which is saved in the configuration file. Leave it out, "
            "and instead add a line to ~/.pgpass (mode 0600): HOST:5432:DATABASE:USER:PASSWORD"
        )
    if "store" in settings:
        _check_directory(settings["store"])
        _warn_of_records(context, name, settings["store"])
    key = options.key(context) if options.has_key else {}
    with _changed_file(context) as config:
        before = profiles.stored(config, name)
        replaced = KEY_SOURCES if key else ()
        kept = {setting: value for setting, value in before.settings.items() if setting not in replaced}
        words = preferences.words(before.setting("words") or {}) if preferences.word else {}
        config.profiles[name] = kept | settings | key | words
        if words == {"words": {}}:
            del config.profiles[name]["words"]
    return _changed(context, config, name, "Changed")


def _check_directory(store: str) -> None:
    """Raise ConfigurationError if the file of a store is in a directory that this user cannot access."""
    location = location_of(store)
    if isinstance(location, Path):
        with files.explained("use the store", location, "nothing was changed"), suppress(FileNotFoundError):
            location.stat()


def _warn_of_records(context: Context, name: str, to: str) -> None:
    """Warn if the earlier store of a profile has records that protect people, with the commands that move them."""
    if context.environ.get(STORE_VARIABLE):  # the variable comes before the setting
        return
    from msgctl.store import move
    from msgctl.store.store import open_store

    new, timeout = location_of(to), min(context.options.timeout, MAX_CHECK)
    try:
        old = context.with_profile(name).store_location
        if old == resolved(new):
            return
        with closing(open_store(old, timeout=timeout, is_moving=True, creates=False)) as store:
            mark = move.mark_of(store.db)
            if mark is not None and mark.state == "moved":
                return
            contents, old_id = move.contents(store, unfinished=True), move.id_of(store.db)
    except MissingStoreError:
        return
    except STORE_ERRORS as error:
        context.warn(f"The store used until now cannot be checked: {error.what}. It may have opt-outs, keys and jobs.")
        return
    if not (contents.optouts or contents.keys or contents.jobs):
        return
    if fix := _fix_for_records(shlex.quote(name), old, new, contents, timeout, old_id):
        context.warn(
            f"The store in use until now has {plural(contents.optouts, 'opt-out')}, {plural(contents.keys, 'key')} and "
            f"{plural(contents.jobs, 'unfinished job')}, which stay there. {fix}"
        )


def _fix_for_records(
    name: str, old: str | Path, new: str | Path, contents: "Contents", timeout: float, old_id: str
) -> str:
    """Return the commands for the records of an earlier store; empty if the new store is the same one."""
    from msgctl.store import move
    from msgctl.store.store import open_store

    in_old = f"MSGCTL_STORE={shlex.quote(without_password(str(old)))} msgctl"
    target = shlex.quote(without_password(str(new)))
    fix = f"Move them before you send anything:\n{in_old} store move --to {target}"
    try:
        with closing(open_store(new, timeout=timeout, is_moving=True, creates=False)) as store:
            if move.id_of(store.db) == old_id:  # only the user, the password or the spelling differs
                return ""
            if move.mark_of(store.db) is not None or move.is_empty(store.db):
                return fix
    except STORE_ERRORS:  # the move creates it, or explains why it cannot be used
        return fix
    fix = "The new store is not empty, so they cannot be moved."
    if contents.optouts:
        fix += (
            " Add the opt-outs to it before you send anything:\n"
            f"{in_old} -p {name} optout list -o csv > optouts.csv\n"
            f"msgctl -p {name} optout import optouts.csv --no-number-check"  # the numbers were checked
        )
    if contents.jobs:
        fix += f"\nTo resume or cancel the jobs there, list them: {in_old} -p {name} job list"
    return fix


@contextmanager
def _changed_file(context: Context) -> Iterator[ConfigFile]:
    """Yield the configuration file to change it, and then save it. Print a note if its comments were not kept."""
    with config_file.changed(context.config_path) as config:
        yield config
    if config.has_comments:
        context.note(f"The comments in {files.shown(context.config_path)} were not kept.")


def _changed(context: Context, config: ConfigFile, name: str, verb: str) -> Result:
    """Report a change of a profile; with --json, return the profile."""
    default = " (the default)" if config.default == name else ""
    context.note(f"{verb} profile {name}{default}")
    return TextResult("", _document(profiles.stored(config, name), config))


def _check_new(config: ConfigFile, name: str, *, force: bool) -> None:
    if fault := profiles.name_fault(name):
        raise UsageError(f"The name {quote(name)} {fault}", "Choose another name.")
    if name in config.profiles and not force:
        raise UsageError(
            f"There is already a profile {quote(name)}",
            "Change it with: msgctl profile set. Or replace its account with --force.",
        )


def _ask_for_missing(context: Context, settings: TomlTable) -> None:
    """Prompt for missing settings until the profile is usable. Raises Cancelled."""
    base_url = partial(checked_base_url, allow_http=False)
    questions: dict[str, Callable[[str], str | int]] = {"Base URL": base_url, "Client": values.client}
    for question, convert in questions.items():
        setting = question.lower().replace(" ", "_")
        while setting not in settings:
            try:
                settings[setting] = convert(prompts.ask(context, f"{question}: ").strip())
            except UsageError as error:
                context.say(f"{error.message}. {error.hint or ''}".rstrip())


def _refuse_missing(settings: TomlTable, *, has_key: bool) -> None:
    """Raise UsageError if required options are missing; the error lists them all."""
    required = {"--base-url": "base_url" in settings, "--client": "client" in settings}
    required["--key-stdin (or --key-command)"] = has_key
    if missing := [option for option, is_given in required.items() if not is_given]:
        raise UsageError(
            f"Missing {'option' if len(missing) == 1 else 'options'}: {', '.join(missing)}",
            "On a terminal, msgctl prompts for missing options.",
        )


def _check_account(context: Context, name: str, settings: TomlTable) -> Result:
    """Request and return the balance with the unsaved profile. After an error, nothing is saved."""
    context.use(StoredProfile(name, profiles.COMMAND_LINE, settings, f"profile {name}").checked())
    request = build(ops.BALANCE, {})
    if context.options.dry_run:
        return dry_run(context, request)
    try:
        return perform(context, request)
    except MsgctlError as error:
        raise error.replaced(consequence="nothing was saved") from None


@command(app, "list", "msgctl profile list", "msgctl profile list --json", output=PROFILE_FIELDS, json="list")
def list_(context: Context) -> Result:
    """List the profiles, without their keys."""
    config = context.config
    stored = [profiles.stored(config, name) for name in config.profiles if name != profiles.SANDBOX]
    documents = [_document(profile, config) for profile in (*stored, profiles.THE_SANDBOX)]
    return OwnResult(documents, PROFILE_FIELDS, Layout.PROFILES)


@command(app, "show", "msgctl profile show", "msgctl profile show main --json", output=SHOWN_FIELDS)
def show(
    context: Context,
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[NAME]", help="Name of the profile; the one in use if omitted.", autocompletion=profile_names
        ),
    ] = None,
) -> Result:
    """Show each setting that applies to a run, and where it comes from, without the key."""
    named = context.options.profile if name is None else name
    profile = profiles.choose(lambda: context.config, context.environ, named)
    config = ConfigFile(context.config_path, {}) if not profile.by else context.config
    document, sources = _document(profile, config), _sources(profile)
    for setting, variable in (("country_code", COUNTRY_VARIABLE), ("store", STORE_VARIABLE)):
        value = context.environ.get(variable)
        if value and not (setting == "store" and profile.is_sandbox):
            document[setting], sources[setting] = _shown(setting, value), variable
    if context.is_json:
        return OwnResult({**document, "sources": sources}, SHOWN_FIELDS)
    rows: list[TomlTable] = [{"setting": "name", "value": profile.name, "source": profile.by or "variables"}]
    for setting, source in sources.items():
        rows.append({"setting": setting, "value": document.get(setting), "source": source})
    return OwnResult(rows, SHOWN_FIELDS)


def _sources(profile: StoredProfile) -> dict[str, str]:
    """Return where each setting of a profile comes from: the file, a variable of the account, or a default."""
    sources = {}
    for setting in ("base_url", "client", "key", *profiles.OPTIONS):
        if not profile.by and setting in profiles.VARIABLES:
            sources[setting] = profiles.VARIABLES[setting]
        elif setting in profile.settings or (setting == "key" and "key_command" in profile.settings):
            sources[setting] = "built in" if profile.is_sandbox else "file"
        else:
            sources[setting] = "default"
    return sources


@command(app, "use", "msgctl profile use main")
def use(context: Context, name: Name) -> Result:
    """Make a profile the default."""
    with _changed_file(context) as config:
        if name != profiles.SANDBOX:
            profiles.stored(config, name)
        config.document["default_profile"] = name
    context.note(f"{name} is now the default profile")
    profile = profiles.THE_SANDBOX if name == profiles.SANDBOX else profiles.stored(config, name)
    return TextResult("", _document(profile, config))


@command(app, "remove", "msgctl profile remove main", "msgctl profile remove main --yes", asks=True)
def remove(context: Context, name: Name) -> Result:
    """Remove a profile and its key."""
    _refuse_sandbox(name)
    profiles.stored(context.config, name)
    prompts.confirm(context, f"Remove profile {name} and its key?")
    with _changed_file(context) as config:
        document = _document(profiles.stored(config, name), config)
        del config.profiles[name]
        default = _new_default(config, name)
    context.note(f"Removed profile {name}{default}")
    return TextResult("", document)


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
        hint = "For numbers without a country code, set MSGCTL_COUNTRY_CODE, or use --country-code."
        raise UsageError("The sandbox profile is built in and cannot be changed", hint)


@command(app, "path", "msgctl profile path", 'chmod 600 "$(msgctl profile path)"')
def path(context: Context) -> Result:
    """Print the path of the configuration file."""
    path = str(context.config_path)
    return TextResult(f"{clean(path)}\n", {"path": path})


_KEYS = {"key": "stored", "key_command": "command"}


def _document(profile: StoredProfile, config: ConfigFile) -> dict[str, Any]:
    """Return the settings of a profile, with the source of its key instead of the key."""
    base_url, client = profile.settings.get("base_url"), profile.settings.get("client")
    key = next((shown for setting, shown in _KEYS.items() if profile.settings.get(setting)), "missing")
    if profile.is_sandbox:
        key = "built in"
    elif not profile.by:
        key = "environment"
    if isinstance(base_url, str) and base_url_fault(base_url, allow_http=True):
        base_url = "cannot be used"  # it may contain a password, or the key
    document = {
        "name": profile.name,
        "default": profile.name == config.default,
        "base_url": base_url if isinstance(base_url, str) else None,
        "client": client if isinstance(client, int) else None,
        "key": key,
    }
    for setting in profiles.OPTIONS:
        value = profile.settings.get(setting)
        if isinstance(value, (str, bool)) or profiles.are_words(value):
            document[setting] = _shown(setting, value)
    return document


def _shown(setting: str, value: Any) -> Any:
    """Return the value of a setting; the URL of a store without its password."""
    return store_shown(value) if setting == "store" else value
