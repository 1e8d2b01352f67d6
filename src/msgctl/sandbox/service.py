"""The whole sandbox: the operations with their faults, its own endpoints, short URLs, and its page."""

from __future__ import annotations

from email.utils import formatdate
from urllib.parse import quote

from msgctl.errors import UsageError
from msgctl.operations import Place
from msgctl.sandbox import clicks, faults, page
from msgctl.sandbox.emulator import Emulator
from msgctl.sandbox.endpoints import BAD_REQUEST, ENDPOINTS
from msgctl.sandbox.protocol import (
    JSON_TYPE,
    OWN_PATH,
    PAGE,
    UNKNOWN_ERROR,
    VISITS,
    Refusal,
    SandboxRequest,
    SandboxResponse,
    json_response,
    parameters_of,
    quoted,
    sent_parameters,
    wrong_method,
)

_KEPT_IN_LOCATION = "%/:=&?~#+!$,;'@()*[]"


def respond(emulator: Emulator, request: SandboxRequest, address: str = "") -> SandboxResponse:
    """Respond to a request from an address; faults apply to operations. Raises only ConfigurationError."""
    is_own = request.path == PAGE or request.path.startswith(OWN_PATH)
    if is_own or request.path.startswith(VISITS):
        response = _own_response(emulator, request)
    else:
        is_faulty = emulator.read_settings()
        if not emulator.allows(address):
            # Like wrong credentials: the API does not distinguish the two.
            response = emulator.refused(Refusal("UNAUTHORIZED", "client or key is wrong"))
        elif is_faulty:
            response = faults.respond(emulator, request)
        else:
            response = emulator.carry_out(request)
    if not is_own:
        emulator.log(request, response)
    if emulator.stopped is None:
        return response
    return response._replace(headers={**response.headers, "date": formatdate(emulator.stopped, usegmt=True)})


def _own_response(emulator: Emulator, request: SandboxRequest) -> SandboxResponse:
    """Respond to a request for the page, a short URL or an endpoint; an error is 400, 404 or 405."""
    try:
        if request.path == PAGE:
            if request.method not in ("GET", "HEAD"):
                raise wrong_method(PAGE, "GET", "HEAD")
            return page.response()
        if request.path.startswith(VISITS):
            return _visit(emulator, request)
        return _carry_out(emulator, request)
    except UsageError as error:
        why = error.message + (f". {error.hint}" if error.hint else "")
        return Refusal("INVALID_PARAMETER", why, status=BAD_REQUEST).response()
    except Refusal as refusal:
        if refusal.status == UNKNOWN_ERROR:
            refusal.status = BAD_REQUEST
        return refusal.response()


def _carry_out(emulator: Emulator, request: SandboxRequest) -> SandboxResponse:
    """Call the endpoint for a request. Raises Refusal and UsageError."""
    path = request.path.rstrip("/")
    endpoints = {endpoint.method: endpoint for endpoint in ENDPOINTS if endpoint.path == path}
    if not endpoints:
        raise Refusal("NOT_FOUND", f"nothing at the path {quoted(request.path)}", status=404)
    if request.method not in endpoints:
        raise wrong_method(path, *endpoints)
    endpoint = endpoints[request.method]
    if request.method == "POST" and not request.body:
        request = request._replace(headers={"content-type": JSON_TYPE}, body=b"{}")
    known = [field.name for field in endpoint.fields]
    place = Place.QUERY if request.method == "GET" else Place.JSON
    for name in sent_parameters(place, request):
        if name not in known:
            raise UsageError(f"unknown parameter {quoted(name)}: choose from {', '.join(known) or 'none'}")
    result = endpoint.handle(emulator, **parameters_of(endpoint.fields, request))
    return result if isinstance(result, SandboxResponse) else json_response(result)


def _visit(emulator: Emulator, request: SandboxRequest) -> SandboxResponse:
    """Redirect to the long URL and count the visit; a HEAD request does not count."""
    if request.method not in ("GET", "HEAD"):
        raise wrong_method("a short URL", "GET", "HEAD")
    alias = request.path.removeprefix(VISITS)
    with emulator.writing() as db:
        # An alias is ASCII; other text may be impossible to store.
        row = alias.isascii() and db.execute("SELECT * FROM urls WHERE alias = ?", (alias,)).fetchone()
        if not row:
            raise Refusal("NOT_FOUND", f"no short URL ends in {quoted(alias)}", status=404)
        if request.method == "GET":
            clicks.add(db, row, emulator.now(db)[0], [{}])
    location = quote(row["url_long"], safe=_KEPT_IN_LOCATION)
    return SandboxResponse(302, b"", {"location": location, "cache-control": "no-store"})
