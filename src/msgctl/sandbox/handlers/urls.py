"""Short URLs and the statistics of their clicks."""

from __future__ import annotations

import string

from msgctl.operations import PREMIUM_CATEGORIES
from msgctl.sandbox import clicks
from msgctl.sandbox.decode import Parameters
from msgctl.sandbox.messages import Scope
from msgctl.sandbox.protocol import Refusal, invalid, quoted

ALIAS_LENGTH = 7

_ALPHABET = string.ascii_letters + string.digits


def shorten(scope: Scope, parameters: Parameters) -> dict[str, object]:
    """Create a short URL. Raises Refusal if its name or alias is taken."""
    name, url_long = parameters.text("name"), parameters.text("url-long")
    if scope.db.execute("SELECT 1 FROM urls WHERE name = ?", (name,)).fetchone():
        raise Refusal("ALREADY_TAKEN", f"name: there is already a short URL {quoted(name)}", parameter="name")
    alias = _alias(scope, parameters.optional("alias"))
    domain = parameters.optional("domain-name")
    url_short = f"https://{domain}/{alias}" if domain else f"{scope.origin}/u/{alias}"
    scope.db.execute(
        "INSERT INTO urls (name, alias, url_short, url_long, premium) VALUES (?, ?, ?, ?, ?)",
        (name, alias, url_short, url_long, parameters.flag("is-premium")),
    )
    return {"urlShort": url_short, "urlLong": url_long, "msg": "The short URL was created."}


def statistic(scope: Scope, parameters: Parameters) -> dict[str, object]:
    """Return the clicks of a range of days, by the requested category or by all categories of the URL."""
    days = (parameters.text("since"), parameters.text("until"))
    if days[0] > days[1]:
        raise invalid("since", f"must not be after until ({days[0]} is after {days[1]})")
    name = parameters.text("name-url")
    url = scope.db.execute("SELECT * FROM urls WHERE name = ?", (name,)).fetchone()
    if url is None:
        raise Refusal("NOT_FOUND", f"name-url: no short URL {quoted(name)}", parameter="name-url")
    categories = _categories(parameters.optional("category"), premium=bool(url["premium"]))
    return {
        "urlShort": url["url_short"],
        "urlLong": url["url_long"],
        "clicksNumber": clicks.total(scope.db, url["number"], days),
        "metrics": clicks.metrics(scope.db, url["number"], days, categories),
    }


def _alias(scope: Scope, wanted: str | None) -> str:
    if wanted is None:
        while True:
            alias = "".join(scope.random.choices(_ALPHABET, k=ALIAS_LENGTH))
            if not _is_taken(scope, alias):
                return alias
    if _is_taken(scope, wanted):
        raise Refusal("ALREADY_TAKEN", f"alias: there is already a short URL ending in {quoted(wanted)}")
    return wanted


def _is_taken(scope: Scope, alias: str) -> bool:
    return scope.db.execute("SELECT 1 FROM urls WHERE alias = ?", (alias,)).fetchone() is not None


def _categories(wanted: str | None, *, premium: bool) -> tuple[str, ...]:
    if wanted is None:
        return tuple(name for name in clicks.CATEGORIES if premium or name not in PREMIUM_CATEGORIES)
    if wanted in PREMIUM_CATEGORIES and not premium:
        raise Refusal("NOT_PREMIUM", f"category: {wanted} is available for premium URLs only", parameter="category")
    return (wanted,)
