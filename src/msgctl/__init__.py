"""SMS, calls, verification codes, short URLs and chat-app messages from the command line.

``.github/CONTRIBUTING.md`` has the map of the packages, and the path of one run.
"""

__version__ = "0.4.0"
