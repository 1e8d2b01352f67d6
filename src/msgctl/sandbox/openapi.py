"""The description of the 13 operations and of the sandbox's own endpoints: OpenAPI 3.1, made from `operations`."""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import cache
from typing import Any

from msgctl import __version__
from msgctl.operations import OPERATIONS, Field, Kind, Member, Operation, Place
from msgctl.sandbox import endpoints
from msgctl.sandbox.endpoints import Endpoint
from msgctl.sandbox.protocol import BASE_PATH, FORM_TYPE, FORMATS, JSON_TYPE, SandboxResponse

Schema = dict[str, Any]

_ERROR: Schema = {"type": "object", "properties": {"error": {"type": "string"}, "msg": {"type": "string"}}}
_FORMATS = {"since": "date", "until": "date", "url-long": "uri"}
_ERRORS = {
    "400": "The request is malformed.",
    "403": "Host or Origin is not one of the sandbox.",
    "405": "The path does not support the method.",
    "429": "A fault that was set.",
    "503": "A fault that was set.",
    "520": "Unknown; invalid parameters.",
}
_CREDENTIALS = (
    ("client", {"type": "integer", "format": "int64"}, "Client (account) identifier."),
    ("key", {"type": "string", "minLength": 1}, "Account key."),
)


@cache
def response() -> SandboxResponse:
    """Return the document as a response."""
    return SandboxResponse(200, (json.dumps(document(), indent=2) + "\n").encode(), {"content-type": JSON_TYPE})


def document() -> Schema:
    """Return the OpenAPI document."""
    paths: dict[str, Schema] = {}
    for operation in OPERATIONS:
        paths[BASE_PATH + operation.path] = {operation.method.lower(): _operation(operation)}
    for endpoint in endpoints.ENDPOINTS:
        paths.setdefault(endpoint.path, {})[endpoint.method.lower()] = _endpoint(endpoint)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "msgctl sandbox",
            "version": __version__,
            "description": "An emulator of the messaging service (interface 1.0.0), and its own endpoints.",
        },
        "paths": paths,
        "components": {
            "schemas": {
                "Error": _ERROR,
                **{each.answer.name.replace(" ", "-"): _record(each.answer.members) for each in OPERATIONS},
            }
        },
    }


def _operation(operation: Operation) -> Schema:
    described: Schema = {
        "operationId": operation.name.replace(" ", "-"),
        "tags": ["service"],
        "summary": f"{operation.method} {operation.path}",
        "responses": {
            "200": _json("The operation succeeded.", {"$ref": _ref(operation.answer.name)}),
            **{code: _json(why, {"$ref": _ref("Error")}) for code, why in _ERRORS.items()},
        },
    }
    given = [(name, schema, text, operation.credentials, True) for name, schema, text in _CREDENTIALS]
    given += [(field.name, _schema(field), field.help, field.place, field.required) for field in operation.fields]
    query = [
        {"name": name, "in": "query", "required": required, "description": text, "schema": schema}
        for name, schema, text, place, required in given
        if place is Place.QUERY
    ]
    if query:
        described["parameters"] = query
    body = [each for each in given if each[3] is not Place.QUERY]
    if body:
        schema = {
            "type": "object",
            "properties": {name: {**schema, "description": text} for name, schema, text, _, _ in body},
            "required": [name for name, _, _, _, required in body if required],
        }
        media = JSON_TYPE if body[0][3] is Place.JSON else FORM_TYPE
        described["requestBody"] = {"required": True, "content": {media: {"schema": schema}}}
    return described


def _endpoint(endpoint: Endpoint) -> Schema:
    described: Schema = {
        "operationId": f"{endpoint.method.lower()}-{endpoint.path.strip('/').replace('/', '-')}",
        "tags": ["sandbox"],
        "summary": endpoint.summary,
        "responses": {
            "200": _json("Done.", {"type": "object"}),
            **{code: _json(_ERRORS[code], {"$ref": _ref("Error")}) for code in ("400", "403")},
        },
    }
    if endpoint.method == "GET":
        described["parameters"] = [
            {"name": name, "in": "query", "description": each.help, "schema": {"type": each.kind}}
            for name, each in endpoint.parameters.items()
        ]
    elif endpoint.parameters:
        properties = {name: {"type": each.kind, "description": each.help} for name, each in endpoint.parameters.items()}
        required = [name for name, each in endpoint.parameters.items() if each.required]
        schema = {"type": "object", "properties": properties, "required": required}
        described["requestBody"] = {"content": {JSON_TYPE: {"schema": schema}}}
    return described


def _schema(field: Field) -> Schema:
    if field.kind is Kind.ARRAY:
        return {"type": "array", "items": {"type": "string"}}
    if field.kind is Kind.BOOLEAN:
        return {"type": "boolean"}
    if field.least is not None or field.most is not None:
        limits = {"minimum": field.least, "maximum": field.most}
        return {"type": "integer", **{name: limit for name, limit in limits.items() if limit is not None}}
    schema: Schema = {"type": "string", "minLength": 1}
    if field.choices:
        schema["enum"] = list(field.choices)
    if field.name in _FORMATS:
        schema["format"] = _FORMATS[field.name]
    elif field.name in FORMATS:
        pattern, _ = FORMATS[field.name]
        schema["pattern"] = f"^{pattern}(,{pattern})*$" if field.several else f"^{pattern}$"
    return schema


def _record(members: Iterable[Member]) -> Schema:
    return {"type": "object", "properties": {member.name: _member(member) for member in members}}


def _member(member: Member) -> Schema:
    if member.kind is Kind.ARRAY:
        return {"type": "array", "items": _record(member.of)}
    if member.kind is Kind.OBJECT:
        return _record(member.of)
    return {"type": member.kind.value}


def _json(description: str, schema: Schema) -> Schema:
    return {"description": description, "content": {JSON_TYPE: {"schema": schema}}}


def _ref(name: str) -> str:
    return f"#/components/schemas/{name.replace(' ', '-')}"
