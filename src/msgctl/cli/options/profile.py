"""The options of a profile: its account, and its other settings."""

from collections.abc import Mapping
from typing import Annotated, Any, NamedTuple

import typer

from msgctl import files, values
from msgctl import operations as ops
from msgctl.cli.shell import prompts
from msgctl.cli.shell.completion import country_codes, file_names
from msgctl.cli.shell.context import Context
from msgctl.cli.shell.options import (
    ACCOUNT,
    PREFERENCES,
    Choice,
    OptionGroup,
    choice_option,
    text_option,
    value_option,
)
from msgctl.config import profiles
from msgctl.config.file import TomlTable
from msgctl.config.profiles import WORDS
from msgctl.config.urls import base_url_fault, is_store_url, location_of, without_secrets
from msgctl.errors import UsageError
from msgctl.values import quote

_VOICE = Choice(tuple(dict.fromkeys(ops.CALL_VOICES + ops.VERIFICATION_VOICES)), "voice")


def _time_zone(text: str) -> str:
    if not profiles.is_time_zone(text):
        raise UsageError(f"Unknown time zone {quote(text)}", "Use a name such as America/Bogota.")
    return text


class Word(NamedTuple):
    """A word of the service and its kind, one of `WORDS`. An empty text removes the added words of the kind."""

    kind: str
    text: str


def store_location(text: str) -> str:
    """Return the absolute path or the URL of a store, because a profile is used in any directory.

    Raises ConfigurationError. Raises UsageError; its message omits the text, which may contain a password.
    """
    if "://" in text and not is_store_url(text):
        raise UsageError("The store must be a path, or a URL such as postgresql://user@host/database")
    if not text.strip():
        usual = files.typed(files.state_path("store.sqlite3", "MSGCTL_STORE"))
        raise UsageError("The path or URL of the store is empty", f"The usual file is {usual}")
    return str(location_of(values.short_text(text, "The path or URL of the store")))


def _word(text: str) -> Word:
    kind, equals, word = text.partition("=")
    if not equals:
        raise UsageError(f"--word must be KIND=TEXT, not {quote(text)}", f"KIND is one of {', '.join(WORDS)}.")
    if word:
        values.short_text(word, "The text of --word")
    return Word(values.choice(kind.strip(), WORDS, "kind of word"), word)


class AccountOptions(OptionGroup):
    """The account of a profile: its address, client ID and key."""

    base_url: Annotated[
        str | None, value_option("--base-url", "URL", "Base URL of the service; it ends in /api/v1.", panel=ACCOUNT)
    ] = None
    client: Annotated[
        int | None, value_option("--client", "N", "Client ID of the account.", values.client, panel=ACCOUNT)
    ] = None
    key_stdin: Annotated[
        bool, typer.Option("--key-stdin", help="Read the key from standard input.", rich_help_panel=ACCOUNT)
    ] = False
    key_command: Annotated[
        str | None,
        text_option("--key-command", "CMD", "Save a command that prints the key, instead of the key.", panel=ACCOUNT),
    ] = None

    def settings(self, *, allow_http: bool) -> TomlTable:
        """Return the base URL and the client in the options. Raises UsageError."""
        if self.key_command is not None and self.key_stdin:
            raise UsageError("Use either --key-command or --key-stdin, not both")
        settings: TomlTable = {}
        if self.base_url is not None:
            settings["base_url"] = checked_base_url(self.base_url, allow_http=allow_http)
        if self.client is not None:
            settings["client"] = self.client
        return settings

    @property
    def has_key(self) -> bool:
        return self.key_stdin or self.key_command is not None

    def key(self, context: Context) -> TomlTable:
        """Read the key or prompt for it, and return its setting. Raises UsageError and Cancelled."""
        if self.key_command is not None:
            return {"key_command": self.key_command}
        key = prompts.read_key(context, from_stdin=self.key_stdin)
        if len(key) < profiles.MIN_KEY:
            context.warn(profiles.SHORT_KEY)
        return {"key": key}


class Preferences(OptionGroup):
    """Defaults for options, and the other settings of a profile."""

    country_code: Annotated[
        str | None,
        value_option(
            "--country-code",
            "CC",
            "Default for --country-code.",
            values.country_code,
            panel=PREFERENCES,
            complete=country_codes,
        ),
    ] = None
    app_name: Annotated[str | None, text_option("--app-name", "NAME", "Default for --app-name.", panel=PREFERENCES)] = (
        None
    )
    voice: Annotated[
        str | None, choice_option("--voice", "NAME", "Default for --voice.", _VOICE, panel=PREFERENCES)
    ] = None
    timezone: Annotated[
        str | None,
        value_option(
            "--timezone",
            "ZONE",
            "Time zone of jobs and of all times that you see, such as America/Bogota.",
            _time_zone,
            panel=PREFERENCES,
        ),
    ] = None
    store: Annotated[
        str | None,
        value_option(
            "--store",
            "STORE",
            "Where msgctl keeps its records: a path or a postgresql:// URL.",
            store_location,
            panel=PREFERENCES,
            complete=file_names,
        ),
    ] = None
    word: Annotated[
        list[Word] | None,
        value_option(
            "--word",
            "KIND=TEXT",
            f"Word of the service and its kind: {', '.join(WORDS)} (repeatable). KIND= removes the added words.",
            _word,
            panel=PREFERENCES,
        ),
    ] = None

    def settings(self) -> TomlTable:
        """Return the settings in the options, except ``words``."""
        return {setting: value for setting, value in vars(self).items() if setting != "word" and value is not None}

    def words(self, before: Mapping[str, Any]) -> TomlTable:
        """Return the changed setting ``words``."""
        words = {kind: [*texts] for kind, texts in before.items()}
        for kind, text in self.word or ():
            texts = words.setdefault(kind, [])
            if not text:
                texts.clear()
            elif text not in texts:
                texts.append(text)
        return {"words": {kind: texts for kind, texts in words.items() if texts}}


def checked_base_url(text: str, *, allow_http: bool) -> str:
    """Return the value of --base-url. Raises UsageError."""
    if fault := base_url_fault(text, allow_http=allow_http):
        raise UsageError(f"--base-url {fault}: {quote(without_secrets(text))}", profiles.URL_HINT)
    return text
