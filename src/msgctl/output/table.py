"""Lines in colour. The one module of this package that needs Rich, and only a coloured screen loads it."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator

from rich.console import Console
from rich.text import Text

from msgctl.output.plain import Line


def painted(lines: Iterable[Line]) -> Iterator[str]:
    """The lines with the escape sequences of their styles, each with its line end.

    Spans become Text objects, in which Rich looks for no markup. The lines have been laid out already, so Rich
    neither wraps nor crops them. The 16 colours of the terminal's own theme are used.
    """
    console = Console(
        file=io.StringIO(),
        force_terminal=True,
        color_system="standard",
        no_color=False,
        width=80,
        height=25,
        legacy_windows=False,
    )
    for line in lines:
        text = Text.assemble(*line)
        text.rstrip()
        with console.capture() as capture:
            console.print(text, soft_wrap=True)
        yield capture.get()
