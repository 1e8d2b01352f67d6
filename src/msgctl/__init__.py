"""msgctl: SMS, calls, verification codes, short URLs and chat-app messages from the command line."""

__version__ = "0.3.0"
