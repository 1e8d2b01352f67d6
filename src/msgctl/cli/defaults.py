"""Values that a profile may give where none was typed."""

from __future__ import annotations

from collections.abc import Callable

from msgctl import values
from msgctl.cli.context import Context
from msgctl.errors import ConfigurationError, UsageError
from msgctl.operations import Field


def country_code(context: Context, text: str | None) -> str | None:
    """A country code, where there is one. Raises UsageError, and ConfigurationError for that of the profile."""
    return _defaulted(context, "country_code", text, values.country_code)


def app_name(context: Context, text: str | None) -> str:
    """The name of an application. Raises UsageError, and ConfigurationError for that of the profile."""
    name = _defaulted(context, "app_name", text, lambda name: values.words(name, "--app-name"))
    if name is None:
        raise UsageError(
            "--app-name is missing: the name of the application that the code is for",
            "Give --app-name NAME."
            if context.profile.is_sandbox
            else f"Give --app-name NAME, or store it as app_name in profile {context.profile.name}.",
        )
    return name


def voice(context: Context, text: str | None, field: Field) -> str:
    """The name of a voice. Raises UsageError, and ConfigurationError for that of the profile."""
    name = _defaulted(context, "voice", text, lambda name: values.voice(name, field))
    if name is None:
        raise UsageError(f"--voice is missing: allowed are {', '.join(field.choices)}", "Give --voice NAME.")
    return name


def _defaulted(context: Context, member: str, text: str | None, convert: Callable[[str], str]) -> str | None:
    """What was typed, or else the profile's default of the same name, which is asked for only then."""
    if text is not None:
        return convert(text)
    default: str | None = getattr(context.profile, member)
    if default is None:
        return None
    try:
        return convert(default)
    except UsageError as error:
        option = "--" + member.replace("_", "-")
        raise ConfigurationError(
            f"{member} of profile {context.profile.name}: {error.message}", f"Mend it, or give {option}."
        ) from error
