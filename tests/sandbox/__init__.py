"""Tests of the sandbox: a client sends requests to the emulator and checks its responses."""
