"""The emulator, driven as a client drives it: a call in, a reply out."""
