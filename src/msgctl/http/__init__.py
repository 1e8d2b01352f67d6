"""The HTTP core: send an operation as one request, and return its response or raise an error."""

import sys

# httpx imports its own command line if click is installed, which takes 40 ms. Nothing here needs it.
sys.modules.setdefault("httpx._main", None)  # type: ignore[arg-type]
