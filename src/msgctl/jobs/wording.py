"""What a job says to each recipient: the parameters of a request that come from its row, and what they should cost."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from msgctl import segments
from msgctl.jobs.rows import Row
from msgctl.jobs.template import Template


class Content(NamedTuple):
    """Parameters by wire name, and per recipient the segments and the estimated credits."""

    parameters: Mapping[str, str | list[str]]
    segments: int
    cost: int


class Wording:
    """Fills templates from rows. Each text passes ``check``, which returns what goes out or raises UsageError."""

    def __init__(
        self,
        templates: Mapping[str, Template | Sequence[Template]],
        check: Callable[[str], str],
        *,
        in_segments: bool = False,
        cost: int = 1,
    ) -> None:
        self._templates = templates
        self._check = check
        self._in_segments = in_segments
        self._cost = cost
        self._same: Content | None = None
        self._is_same = all(
            template.is_constant
            for each in templates.values()
            for template in ([each] if isinstance(each, Template) else each)
        )

    def content(self, row: Row) -> Content:
        """What a row's recipient gets. Raises UsageError, or UnfilledError, where that cannot be said."""
        if self._same is not None:
            return self._same
        content = self._filled(row)
        if self._is_same:
            self._same = content
        return content

    def _filled(self, row: Row) -> Content:
        parameters: dict[str, str | list[str]] = {}
        count = 0
        for name, template in self._templates.items():
            if isinstance(template, Template):
                text = self._check(template.fill(row))
                parameters[name] = text
                count += segments.count(text).segments if self._in_segments else 0
            else:
                parameters[name] = [self._check(each.fill(row)) for each in template]
        return Content(parameters, count, count if self._in_segments else self._cost)
