"""Check whether the interface allows a request, by its transcription."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from datetime import date
from urllib.parse import urlsplit

from contract import interface
from contract.interface import ENDPOINTS, Endpoint, Parameter
from support.service import Received

_PHONE = "[0-9]{5,15}"  # the digits of a PHONE
_INT64 = 2**63 - 1


def faults(request: Received) -> list[str]:
    """Return what the interface forbids in a request; empty if it allows everything."""
    path = urlsplit(request.target).path
    endpoint = ENDPOINTS.get((request.method, path.removeprefix(interface.BASE_PATH)))
    if endpoint is None or not path.startswith(interface.BASE_PATH):
        return [f"there is no {request.method} {path}"]
    try:
        query = request.query if "?" in request.target else []
        form = request.form if endpoint.content_type == interface.FORM else []
        if endpoint.content_type == interface.JSON and not isinstance(json.loads(request.body), dict):
            return ["a body that is not an object"]
    except ValueError as error:  # not pairs, not ASCII, or not JSON
        return [f"its parameters cannot be read: {error}"]
    names = [name for name, _ in (*query, *form)]
    unknown = [f"{name} is unknown" for name in {*names} - {each.name for each in endpoint.parameters}]
    twice = [f"{name} {number} times" for name, number in Counter(names).items() if number > 1]
    return [*unknown, *twice, *_of_values(endpoint, dict(query) | dict(form))]


def _of_values(endpoint: Endpoint, given: dict[str, str]) -> Iterator[str]:
    for parameter in endpoint.parameters:
        if parameter.place == "json":
            continue
        value = given.get(parameter.name)
        if value is None:
            if parameter.presence == "required" or (parameter.rule("unless") not in {"", *given}):
                yield f"{parameter.name} is missing"
            continue
        if not value.strip():
            yield f"{parameter.name} is empty"
        if excluded := given.keys() & parameter.excludes:
            yield f"{parameter.name} with {', '.join(excluded)}"
        if not _is_allowed(parameter, value):
            yield f"{parameter.name} is {value!r}"
    if "since" in given and given["since"] > given.get("until", ""):
        yield "since is after until"


def _is_allowed(parameter: Parameter, value: str) -> bool:
    if parameter.name == "client":
        return _is_digits(value) and int(value) <= _INT64
    if parameter.name == "phone":
        pattern = f"{_PHONE}(,{_PHONE})*" if "several" in parameter.rules else _PHONE
        phones = value.split(",")
        return re.fullmatch(pattern, value, re.ASCII) is not None and len(set(phones)) == len(phones)
    if most := parameter.rule("maximum"):
        return _is_digits(value) and 1 <= int(value) <= int(most)
    if "boolean" in parameter.rules:
        return value in ("true", "false")
    if "day" in parameter.rules:
        return re.fullmatch(r"\d{4}-\d\d-\d\d", value, re.ASCII) is not None and date.fromisoformat(value) is not None
    if "country" in parameter.rules:
        return re.fullmatch("[A-Z]{2}", value, re.ASCII) is not None
    if "months" in parameter.rules:
        return _is_digits(value)
    return not parameter.values or value in parameter.values


def _is_digits(value: str) -> bool:
    return re.fullmatch(r"\d{1,19}", value, re.ASCII) is not None
