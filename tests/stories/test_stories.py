"""The stories: plain text files of commands, what they print, and what arrives at the service. See README.md."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import pytest

from msgctl.errors import REASONS
from stories.scene import Scene

HERE = Path(__file__).parent


@dataclass
class Story:
    """A title and its lines, each with the indented lines below it."""

    title: str
    responses: list[str] = field(default_factory=lambda: ["documented"])
    steps: list[tuple[int, str, list[str]]] = field(default_factory=list)


def stories(text: str) -> Iterator[Story]:
    story = None
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("# "):
            if story:
                yield story
            story = Story(line[2:])
        elif not line.strip() or line.startswith("("):
            continue
        elif story is None:
            raise ValueError(f"line {number} is before the first title")
        elif line.startswith("  "):
            story.steps[-1][2].append(line[2:])
        elif line.startswith("responses "):
            story.responses = line.removeprefix("responses ").split(" and ")
        else:
            story.steps.append((number, line, []))
    if story:
        yield story


def parameters() -> Iterator[object]:
    for path in sorted(HERE.rglob("*.txt")):
        for story in stories(path.read_text(encoding="utf-8")):
            for responses in story.responses:
                name = f"{path.relative_to(HERE).with_suffix('')}: {story.title}"
                if len(story.responses) > 1:
                    name += f" ({responses})"
                yield pytest.param(path, story, responses, id=name)


@pytest.mark.parametrize(("path", "story", "responses"), list(parameters()))
def test_story(path: Path, story: Story, responses: str, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene(home, monkeypatch, observed=responses == "observed")
    monkeypatch.setattr("msgctl.jobs.limits.MAX_BACKOFF", 0.1)  # a job in this process waits for real
    if any(line.startswith("start ") for _, line, _ in story.steps):
        scene.tool.clock.now = time.time()  # processes follow the machine's clock
    try:
        for number, line, block in story.steps:
            scene.perform(f"{path.relative_to(HERE)}:{number}", line, block)
        scene.settle()
    except Exception as error:
        raise AssertionError(f"{scene.step}\n{error}") from error
    finally:
        scene.close()


def test_every_reason_of_an_error_is_in_a_story_with_its_exit_code() -> None:
    texts = (path.read_text(encoding="utf-8") for path in HERE.rglob("*.txt"))
    in_stories = set()
    for before, line in pairwise(line for text in texts for line in text.splitlines() if re.match("exit|error", line)):
        if match := re.match(r"error reason=(\w+) .*\bnothing_sent=", f"{line} "):
            in_stories.add((match[1], before.rpartition(" ")[2]))
    assert in_stories == {(name, meaning.partition(":")[0]) for name, meaning in REASONS.items()}
