"""The HTTP core: send an operation as one request, and return its response or raise an error."""
