"""How the three shells write words, help, and branches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgctl.cli.shells.outline import Option
from msgctl.cli.shells.tables import Described, code
from msgctl.cli.shells.values import Values


def _quoted(text: str) -> str:
    """A word as bash and zsh take it literally."""
    return "'" + text.replace("'", "'\\''") + "'"


class Bash:
    """Lists are strings of words; there is no help in them."""

    def branch(self, patterns: Iterable[str], body: str) -> str:
        return f"{'|'.join(map(_pattern, patterns))}) {body} ;;"

    def offered(self, words: Described) -> str:
        return f"found='{' '.join(name for name, _ in words)}'"

    def common(self, words: Described) -> Iterator[str]:
        yield f"found+='{' '.join(name for name, _ in words)}'"

    def option(self, option: Option) -> str:
        again = " again=1" if option.again else ""
        return f"same='{' '.join(option.names)}' values={_quoted(code(option.values))}{again}"

    def values(self, values: Values) -> str:
        return f"values={_quoted(code(values))}"


class Zsh(Bash):
    """Lists are arrays of ``word:help``."""

    def offered(self, words: Described) -> str:
        return f"found=({' '.join(map(_described, words))})"

    def common(self, words: Described) -> Iterator[str]:
        yield from map(_described, words)


class Fish:
    """Lists are printed, a line a word, its help behind a tab."""

    def branch(self, patterns: Iterable[str], body: str) -> str:
        return f"case {' '.join(map(_fish_quoted, patterns))}\n        {body}"

    def offered(self, words: Described) -> str:
        listed = " ".join(_fish_quoted(text) for pair in words for text in pair)
        return rf"printf '%s\t%s\n' {listed}"

    def common(self, words: Described) -> Iterator[str]:
        yield self.offered(words)

    def option(self, option: Option) -> str:
        lines = [code(option.values), "1" if option.again else "", *option.names]
        return rf"printf '%s\n' {' '.join(map(_fish_quoted, lines))}"

    def values(self, values: Values) -> str:
        return f"echo {_fish_quoted(code(values))}"


def _pattern(pattern: str) -> str:
    """A pattern in quotes, its ``*`` outside of them."""
    return "*".join(_quoted(part) if part else "" for part in pattern.split("*")) or "''"


def _described(word: tuple[str, str]) -> str:
    return _quoted(":".join(word))


def _fish_quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
