"""Short URLs and the statistics of their clicks."""

from __future__ import annotations

import string

from msgctl.operations import PREMIUM_CATEGORIES
from msgctl.sandbox import clicks
from msgctl.sandbox.dispatch import Context
from msgctl.sandbox.parameters import Parameters
from msgctl.sandbox.wire import Refusal, invalid, quoted

ALIAS_LENGTH = 7

_ALPHABET = string.ascii_letters + string.digits


def shorten(context: Context, parameters: Parameters) -> dict[str, object]:
    """Make a short URL. Raises Refusal where its name or alias is taken."""
    name, url_long = parameters.text("name"), parameters.text("url-long")
    if context.db.execute("SELECT 1 FROM urls WHERE name = ?", (name,)).fetchone():
        raise Refusal("ALREADY_TAKEN", f"name: there is a short URL {quoted(name)}")
    alias = _alias(context, parameters.optional("alias"))
    domain = parameters.optional("domain-name")
    url_short = f"https://{domain}/{alias}" if domain else f"{context.origin}/u/{alias}"
    context.db.execute(
        "INSERT INTO urls (name, alias, url_short, url_long, premium) VALUES (?, ?, ?, ?, ?)",
        (name, alias, url_short, url_long, parameters.flag("is-premium")),
    )
    return {"urlShort": url_short, "urlLong": url_long, "msg": "The short URL was created."}


def statistic(context: Context, parameters: Parameters) -> dict[str, object]:
    """The clicks of a range of days, by all categories that the URL has or by the one asked for."""
    days = clicks.Range(parameters.text("since"), parameters.text("until"))
    if days.since > days.until:
        raise invalid("since", f"must not be after until: {days.since} is after {days.until}")
    name = parameters.text("name-url")
    url = context.db.execute("SELECT * FROM urls WHERE name = ?", (name,)).fetchone()
    if url is None:
        raise Refusal("NOT_FOUND", f"name-url: there is no short URL {quoted(name)}")
    categories = _categories(parameters.optional("category"), premium=bool(url["premium"]))
    return {
        "urlShort": url["url_short"],
        "urlLong": url["url_long"],
        "clicksNumber": clicks.total(context.db, url["number"], days),
        "metrics": clicks.metrics(context.db, url["number"], days, categories),
    }


def _alias(context: Context, wanted: str | None) -> str:
    if wanted is None:
        while True:
            alias = "".join(context.random.choices(_ALPHABET, k=ALIAS_LENGTH))
            if not _is_taken(context, alias):
                return alias
    if _is_taken(context, wanted):
        raise Refusal("ALREADY_TAKEN", f"alias: there is a short URL with the alias {quoted(wanted)}")
    return wanted


def _is_taken(context: Context, alias: str) -> bool:
    return context.db.execute("SELECT 1 FROM urls WHERE alias = ?", (alias,)).fetchone() is not None


def _categories(wanted: str | None, *, premium: bool) -> tuple[str, ...]:
    if wanted is None:
        return tuple(name for name in clicks.CATEGORIES if premium or name not in PREMIUM_CATEGORIES)
    if wanted in PREMIUM_CATEGORIES and not premium:
        raise Refusal("NOT_PREMIUM", f"category: {wanted} is kept for premium URLs alone")
    return (wanted,)
