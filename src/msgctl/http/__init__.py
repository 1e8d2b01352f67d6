"""The HTTP core: an operation and its values go out as one request, and a response or an error comes back."""

import sys

# httpx's own command line, which it loads if click is installed and nothing here needs: 40 ms.
sys.modules.setdefault("httpx._main", None)  # type: ignore[arg-type]
