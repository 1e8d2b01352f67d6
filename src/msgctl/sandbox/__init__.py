"""An emulator of the whole service: the 13 operations, with its own credits, delivery states, codes and clicks.

It follows the API, version 1.0.0. It shares `operations`, `segments`, `errors`, `files` and `text` with the rest of
msgctl, but imports nothing of `http`, so that client and emulator cannot share a mistake.

`routing.respond` converts a `protocol.SandboxRequest` to a `protocol.SandboxResponse`. `protocol.parameters_of`
checks the parameters, and `handlers` carries out the operations. Each operation is one transaction in an SQLite file.
`transport.SandboxTransport` replaces the network, `server` offers the sandbox over HTTP, and `serving` starts a server
with its settings. `endpoints` contains the controls for ``msgctl sandbox`` and programs.

Details that the API does not specify are invented:

- Credits: 1000 at the start. An SMS costs one for each segment, and a call or a chat-app message costs one. A
  verification code costs as much as its message or call. Undelivered messages are charged as well.
- Values of ``error``: MISSING_PARAMETER, INVALID_PARAMETER, UNAUTHORIZED, NOT_ENOUGH_CREDITS, NOT_FOUND,
  INVALID_NAME, INVALID_CODE, EXPIRED_CODE, NOT_PREMIUM, INVALID_TEMPLATE, INVALID_OPERATION (not emulated), and
  METHOD_NOT_ALLOWED with status 405. An unknown path is 404, NOT_FOUND. ``msg`` mentions the parameter.
- A phone number is an optional ``+`` and 5 to 15 digits, and a country code is any two letters. An empty parameter
  counts as not sent. A repeated parameter is refused, and an unknown one is ignored. A body has at most 1 MiB.
- ``status`` of an SMS dispatch: 1 if any message was accepted, 0 if every number is blocked. ``status`` of calls,
  verification codes and chat-app records: ``accepted`` or ``blocked``.
- A number repeated in one dispatch gets one message. Blocking a number again changes only its name.
- Delivery states: SMS and chat-app messages are ``queued``, after one second ``sent``, after two ``delivered``. Calls
  are ``queued``, ``ringing``, ``answered``. Numbers that end in 0001 are never reached (``undelivered``;
  ``not-answered``, or ``voicemail`` with ``leave-voicemail``), numbers that end in 0002 refuse (``rejected``;
  ``busy``), and numbers that end in 0003 stay ``queued`` or ``ringing``. A message to a blocked number is ``blocked``.
  ``retries`` is checked and has no effect.
- Codes: six digits, valid for 10 minutes, masked in every response. A new code replaces the previous one. Five wrong
  guesses make a code void. The response to a correct code contains ``verified``.
- Only the responses named ``documented`` follow the API. The others (see `responses`) imitate services in use. Their
  credits of 0 for an unreachable number do not change the balance.
- Any template except ``missing`` and any audio code is accepted. A chat-app record has the template's name as ``name``.
- Short URLs: names and aliases are unique; an alias is 1 to 64 letters, digits, dashes and underscores, or 7 random
  ones. Statistics use local time and do not expire; ``percent`` is of all clicks in the range. Plain URLs keep the
  date, hour, country, device and system of a click.
"""
