"""The HTTP core: an operation and its values go out as one request, and a response or an error comes back."""
