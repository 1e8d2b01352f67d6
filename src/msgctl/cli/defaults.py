"""Options whose default can come from the profile."""

from __future__ import annotations

from collections.abc import Callable

from msgctl import values
from msgctl.cli.context import Context
from msgctl.errors import ConfigurationError, UsageError
from msgctl.operations import Field

SAME_VOICE = {"marian": "Mariana", "mariana": "Marian"}
"""The one voice that the interface spells in two ways: Marian in calls, Mariana in verification calls."""


def country_code(context: Context, text: str | None) -> str | None:
    """Return the country code of the option or of the profile, if any."""
    return _given(context, "country_code", text, values.country_code)


def app_name(context: Context, text: str | None) -> str:
    """Return the application name of the option or of the profile."""
    name = _given(context, "app_name", text, lambda name: values.words(name, "--app-name"))
    if name is None:
        profile = context.profile
        stored = "" if profile.is_sandbox else f", or store it as app_name in profile {profile.name}"
        raise UsageError("--app-name is missing", f"Give --app-name NAME, the application the code is for{stored}.")
    return name


def voice(context: Context, text: str | None, field: Field) -> str:
    """Return the voice of the option or of the profile; a profile may use either spelling of Marian."""

    def spelled(name: str) -> str:
        other = SAME_VOICE.get(name.lower())
        return values.voice(other if text is None and other in field.choices else name, field)

    name = _given(context, "voice", text, spelled)
    if name is None:
        raise UsageError("--voice is missing", f"Give --voice NAME: choose from {', '.join(field.choices)}.")
    return name


def _given(context: Context, setting: str, text: str | None, convert: Callable[[str], str]) -> str | None:
    """Return the value of an option, else that of the profile, which is loaded only then."""
    if text is not None:
        return convert(text)
    default: str | None = getattr(context.profile, setting)
    if default is None:
        return None
    try:
        return convert(default)
    except UsageError as error:
        raise ConfigurationError(
            f"{setting} of profile {context.profile.name} cannot be used: {error.message}",
            f"Fix it, or give --{setting.replace('_', '-')}.",
        ) from error
