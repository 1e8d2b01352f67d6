"""Route a request to an operation with its faults, to one of the sandbox's own endpoints, a short URL, or the page."""

from __future__ import annotations

from email.utils import formatdate

from msgctl.sandbox.emulator import Emulator
from msgctl.sandbox.protocol import OWN_PATH, PAGE, VISITS, Refusal, SandboxRequest, SandboxResponse


def respond(emulator: Emulator, request: SandboxRequest, address: str = "") -> SandboxResponse:
    """Respond to a request from an address; faults apply to operations. Raises only ConfigurationError."""
    is_own = request.path == PAGE or request.path.startswith(OWN_PATH)
    if is_own or request.path.startswith(VISITS):
        from msgctl.sandbox import endpoints  # most runs in this process make only requests to operations

        response = endpoints.respond_to_own_path(emulator, request)
    else:
        with emulator.reading() as db:
            is_faulty = emulator.read_account(db).is_faulty
        if not emulator.allows(address):
            # Like wrong credentials: the API does not distinguish the two.
            response = emulator.refused(Refusal("UNAUTHORIZED", "client or key is wrong"))
        elif is_faulty:
            from msgctl.sandbox import faults

            response = faults.respond_with_faults(emulator, request)
        else:
            response = emulator.carry_out(request)
    if not is_own:
        emulator.log(request, response)
    stopped = emulator.account.stopped
    if stopped is None:
        return response
    return response._replace(headers={**response.headers, "date": formatdate(stopped, usegmt=True)})
