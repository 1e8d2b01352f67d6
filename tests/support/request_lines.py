"""The command lines that make requests: an example of each command that makes requests.

Nothing here names a command that performs an operation: a new one is found by its facts.
"""

from __future__ import annotations

from dataclasses import dataclass

from conftest import KEY
from msgctl import files
from msgctl.config import profiles
from msgctl.operations import Effect
from support.examples import EXAMPLES, write_job
from support.tool import Outcome, Tool

NEEDS_MORE = {"job run-due", "job resend", "profile set", "sandbox serve", "sandbox exec"}
"""Commands that make no request in the world of the examples, or run until they are stopped."""


@dataclass(frozen=True)
class Line:
    """A command line that makes requests; if ``reads``, it changes nothing."""

    path: str
    arguments: tuple[str, ...]
    reads: bool
    stdin: bytes = b""

    @property
    def sends_a_job(self) -> bool:
        return self.path.endswith(" bulk") or self.path == "job resume"

    def run(self, tool: Tool, *common: str, screen: bool = False) -> Outcome:
        """Run the command line with global options; a job begins in the state that `prepare` created."""
        return tool(*common, *self.arguments, stdin=self.stdin, screen=screen)


def prepare(base_url: str) -> None:
    """Have one job: its first recipient is accepted, the second is pending."""
    for suffix in ("", "-wal", "-shm"):
        files.state_path(f"store.sqlite3{suffix}").unlink(missing_ok=True)
    write_job(profiles.ENVIRONMENT, base_url, client=12345, message="m100001")


def request_lines(base_url: str) -> list[Line]:
    """A line for each command that makes requests: the first of its examples that makes one, not a dry run."""
    check = ("profile", "add", "checked", "--base-url", base_url, "--client", "1", "--key-stdin", "--check", "--force")
    found = {"profile add": Line("profile add", check, reads=True, stdin=KEY.encode())}
    for example in EXAMPLES:
        node, arguments = example.node, example.arguments
        asks = node.facts.effect is not None or node.names[0] == "sandbox"
        if not asks or node.path in {*found, *NEEDS_MORE} or {"--dry-run", "-n", "--last"} & {*arguments}:
            continue
        arguments += ["--max-wait", "1"] if node.path == "state watch" else []
        if "--rate" in arguments:  # which would be slow
            at = arguments.index("--rate")
            arguments = arguments[:at] + arguments[at + 2 :]
        reads = node.facts.effect is Effect.READS or "GET" in arguments
        found[node.path] = Line(node.path, tuple(arguments), reads, example.stdin)
    return list(found.values())
