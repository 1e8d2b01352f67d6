"""An emulator of the whole service: the 13 operations, with credits, delivery states, codes and clicks of its own.

It keeps to the interface, version 1.0.0, wherever the interface says something. It shares `operations` (the facts),
`segments` and `errors` with the rest of msgctl and nothing else, so that the client and it cannot share a mistake.

How it is built: `emulator.Emulator` turns a `wire.Call` into a `wire.Reply`, whatever brought the call;
`parameters` holds it against the operation's fields; `behaviour` has a handler for each operation; `state` keeps
everything in one SQLite file, one transaction an operation. `server` lets others reach it over HTTP, and `tools` is
what the ``msgctl sandbox`` commands do to it.

What the interface does not show, the emulator invents. Nobody should expect these of the real service:

- Credits: 1000 to begin with. An SMS costs one for each segment, a call and a chat-app message cost one; a
  verification code costs what its SMS, call or chat-app message costs. What is charged stays charged, delivered or not.
- Values of ``error``: MISSING_PARAMETER, INVALID_PARAMETER, UNAUTHORIZED, NOT_ENOUGH_CREDITS, NOT_FOUND,
  ALREADY_TAKEN, INVALID_CODE, EXPIRED_CODE, NOT_PREMIUM, and METHOD_NOT_ALLOWED beside the status 405; an unknown
  path is 404, NOT_FOUND. ``msg`` names the parameter.
- Checks: a phone number is an optional ``+`` and 5 to 15 digits; a country code is two letters, and is not looked at
  any further. An empty parameter counts as not sent. A parameter sent twice is refused, an unknown one is ignored.
  A boolean is ``true`` or ``false``. A body has at most 1 MiB.
- ``status`` of an SMS dispatch: 1 where a message was accepted, 0 where every number is blocked. ``status`` of calls,
  verification codes and chat-app records: ``accepted`` or ``blocked``.
- A number given twice in one dispatch gets one message. Blocking a number again changes its name alone.
- Delivery states: SMS and chat-app messages are ``queued``, after one second ``sent``, after two ``delivered``; calls
  ``queued``, ``ringing``, ``answered``. Numbers that end in 0001 are never reached (``undelivered``;
  ``not-answered``, or ``voicemail`` if one was to be left), in 0002 they refuse (``rejected``; ``busy``), in 0003
  nothing moves on (``queued``; ``ringing``). A message to a blocked number is ``blocked``. ``retries`` is checked and
  changes nothing.
- Codes: six digits, 10 minutes, the wording of the message, and that no answer shows the code. A new code replaces the
  one before it. Wrong codes may be tried without limit. A code that was verified answers ``verified``.
- Every template exists. The record of a chat-app message has the template's name as ``name``, and an ``id`` that
  ``/messages-state`` knows.
- Audio codes: every one exists. ``message`` and ``voice`` of such a call are empty.
- Short URLs: names and aliases are unique; an alias is 1 to 64 letters, digits, dashes and underscores, or 7 random
  ones. Statistics are by the days of this machine's calendar and do not expire; each element of ``metrics`` holds one
  object; ``percent`` is of all clicks of the range. URLs that are not premium keep date, hour, country, device and
  system of a click.
"""
