"""The description of the 13 operations and of the sandbox's own endpoints: OpenAPI 3.1, generated from `operations`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any, get_origin

from msgctl import __version__
from msgctl.operations import OPERATIONS, Field, Kind, Operation, Place, ResponseField
from msgctl.sandbox.endpoints import ENDPOINTS, Endpoint
from msgctl.sandbox.protocol import BASE_PATH, CREDENTIALS, FORM_TYPE, FORMATS, JSON_TYPE, MAX_INTEGER, SandboxResponse

Schema = dict[str, Any]

_ERROR: Schema = {
    "type": "object",
    "properties": {"error": {"type": "string"}, "msg": {"type": "string"}},
    "required": ["error", "msg"],
}
_FORMATS = {"since": "date", "until": "date", "url-long": "uri"}
_ERRORS = {
    "400": "The request is malformed.",
    "403": "Host or Origin does not name the sandbox.",
    "405": "The path does not support the method.",
    "429": "A fault that was set.",
    "503": "A fault that was set.",
    "520": "Unknown; invalid parameters.",
}
_TYPES = {str: "string", int: "integer", bool: "boolean", list: "array", dict: "object"}


@cache
def response() -> SandboxResponse:
    """Return the document as a response."""
    return SandboxResponse(200, (json.dumps(_document(), indent=2) + "\n").encode(), {"content-type": JSON_TYPE})


def _document() -> Schema:
    paths: dict[str, Schema] = {}
    for operation in OPERATIONS:
        paths[BASE_PATH + operation.path] = {operation.method.lower(): _operation(operation)}
    for endpoint in ENDPOINTS:
        paths.setdefault(endpoint.path, {})[endpoint.method.lower()] = _endpoint(endpoint)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "msgctl sandbox",
            "version": __version__,
            "description": "An emulator of the messaging service (API 1.0.0), and its own endpoints.",
        },
        "paths": paths,
        "components": {
            "schemas": {
                "Error": _ERROR,
                **{each.record.name.replace(" ", "-"): _record(each.record.fields) for each in OPERATIONS},
            }
        },
    }


def _operation(operation: Operation) -> Schema:
    name, summary = operation.name.replace(" ", "-"), f"{operation.method} {operation.path}"
    fields = (*CREDENTIALS[operation.credentials], *operation.fields)
    return _described(name, "service", summary, fields, {"$ref": _ref(operation.record.name)}, _ERRORS)


def _endpoint(endpoint: Endpoint) -> Schema:
    name = f"{endpoint.method.lower()}-{endpoint.path.strip('/').replace('/', '-')}"
    record = _object({name: {"type": _TYPES[get_origin(kind) or kind]} for name, kind in endpoint.returns.items()})
    return _described(name, "sandbox", endpoint.summary, endpoint.fields, record, ("400", "403", "405"))


def _described(
    name: str, tag: str, summary: str, fields: Sequence[Field], record: Schema, errors: Iterable[str]
) -> Schema:
    """Return the description of an operation or endpoint."""
    described: Schema = {
        "operationId": name,
        "tags": [tag],
        "summary": summary,
        "parameters": [
            {
                "name": field.name,
                "in": "query",
                "required": field.required,
                "description": field.help,
                "schema": _field(field),
            }
            for field in fields
            if field.place is Place.QUERY
        ],
        "responses": {
            "200": _json("Done.", record),
            **{code: _json(_ERRORS[code], {"$ref": _ref("Error")}) for code in errors},
        },
    }
    if body := [field for field in fields if field.place is not Place.QUERY]:
        schema = _object({field.name: {**_field(field), "description": field.help} for field in body})
        schema["required"] = [field.name for field in body if field.required]
        media = FORM_TYPE if body[0].place is Place.FORM else JSON_TYPE
        described["requestBody"] = {"required": bool(schema["required"]), "content": {media: {"schema": schema}}}
    return described


def _field(field: Field) -> Schema:
    if field.kind is Kind.ARRAY:
        return {"type": "array", "items": {"type": "string"}}
    if field.kind is Kind.BOOLEAN:
        return {"type": "boolean"}
    if field.least is not None:
        kind = "number" if field.kind is Kind.NUMBER else "integer"
        return {"type": kind, "minimum": field.least, "maximum": MAX_INTEGER if field.most is None else field.most}
    schema: Schema = {"type": "string", "minLength": 1}
    if field.choices:
        schema["enum"] = list(field.choices)
    if not field.typed:  # the key, or a field of the sandbox's own endpoints
        return schema
    if field.name in _FORMATS:
        schema["format"] = _FORMATS[field.name]
    elif form := FORMATS.get(field.name):
        schema["pattern"] = f"^{form.pattern}(,{form.pattern})*$" if field.several else f"^{form.pattern}$"
    return schema


def _record(fields: Iterable[ResponseField]) -> Schema:
    fields = list(fields)
    schema = _object({each.name: _response_field(each) for each in fields})
    if all(each.kind is Kind.OBJECT for each in fields):  # each element of a statistic is of one category
        schema["required"] = []
    return {**schema, "additionalProperties": False}


def _response_field(field: ResponseField) -> Schema:
    if field.kind is Kind.ARRAY:
        return {"type": "array", "items": _record(field.of)}
    if field.kind is Kind.OBJECT:
        return _record(field.of)
    return {"type": field.kind.value}


def _object(properties: Schema) -> Schema:
    return {"type": "object", "properties": properties, "required": list(properties)}


def _json(description: str, schema: Schema) -> Schema:
    return {"description": description, "content": {JSON_TYPE: {"schema": schema}}}


def _ref(name: str) -> str:
    return f"#/components/schemas/{name.replace(' ', '-')}"
