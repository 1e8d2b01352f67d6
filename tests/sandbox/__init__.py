"""The emulator, used as by a client: a request in, a response out."""
