"""Any command line: a documented exit code, no traceback, nothing raw on the terminal, no forbidden request."""

from __future__ import annotations

from hypothesis import given

from fuzz.words import command_lines
from fuzz.world import World, tries


@tries(300)
@given(line=command_lines())
def test_any_command_line_ends_well(line: tuple[list[str], bytes | None], world: World) -> None:
    words, stdin = line
    world.renew()
    world.run(words, stdin=stdin)
