"""`msgctl mcp`: the commands as tools for programs that speak the Model Context Protocol.

A tool call runs its command in this process, with the profile that the server was started with. The command tree
describes the tools; what reaches files, profiles, keys or other accounts is left out.
"""

from __future__ import annotations

import copy
import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple
from uuid import uuid4, uuid5

import typer

from msgctl import __version__, segments, values
from msgctl.cli import campaign
from msgctl.cli.bulk import MOST_CREDITS
from msgctl.cli.context import Context
from msgctl.cli.errors import report
from msgctl.cli.inputs import known_country
from msgctl.cli.tree import HELP, command, group
from msgctl.errors import ConfigurationError, UsageError
from msgctl.operations import Effect, Operation
from msgctl.output.result import Format
from msgctl.recipients import REFUSED, RecipientOutcome
from msgctl.storage import paths
from msgctl.values import quote

if TYPE_CHECKING:
    from mcp import types
    from mcp.server.lowlevel import Server

    from msgctl.http.request import Value
    from msgctl.reference.description import Node, Parameter

LOCAL = frozenset(
    {"history list", "job list", "job report", "job show", "job states", "optout list", "sms segments", "usage"}
)
"""Commands that are tools although they perform no operation themselves. They read what this machine knows."""
IN_THE_SANDBOX = "sandbox inbox"
WITHHELD = frozenset(
    {
        *("--message-file", "--body", "--base-url"),  # files and servers that only the user may choose
        *("--ignore-optout", "--no-number-check", "--resend-unknown"),  # they lift a check
        *("--follow", "--last"),  # without an end; of all profiles
        "--once",  # every send has a key
    }
)
WAITING = frozenset({"--wait", "--max-wait"})
"""Options that keep a send busy after its request; `state watch` does the same."""

ONCE = "once"
ONCE_HELP = (
    "Key of this send, at most once under each key. If you may have to repeat a call, give it a key and repeat it with"
    " the same key."
)
DRY_RUN = "dry_run"


class Tool(NamedTuple):
    """A command as a tool. ``parameters`` are those of the command that a client may give, by their names here."""

    node: Node
    effect: Effect
    parameters: dict[str, Parameter]

    @property
    def schema(self) -> dict[str, Any]:
        """The JSON Schema of the tool's arguments."""
        properties = {name: _schema(parameter) for name, parameter in self.parameters.items()}
        if self.effect is not Effect.READS:
            about = "Return the request instead of making it."
            properties[DRY_RUN] = {"type": "boolean", "description": about, "default": False}
        if self.effect is Effect.SENDS:
            properties[ONCE] = {"type": "string", "description": ONCE_HELP}
        required = [name for name, parameter in self.parameters.items() if parameter.required]
        return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}

    def words(self, arguments: Mapping[str, Any], key: str) -> list[str]:
        """Return the command line for what a client gave. None of its values can become an option.

        Raises UsageError.
        """
        if unknown := arguments.keys() - self.parameters.keys():
            names = ", ".join(self.schema["properties"])
            raise UsageError(f"Unknown argument {quote(min(unknown))}", f"Arguments: {names}" if names else None)
        options = [f"--once={key}" for option in self.node.options if "--once" in option.names]
        positional: list[str] = []
        skipped: str | None = None
        for name, parameter in self.parameters.items():
            texts = _texts(name, parameter, arguments.get(name))
            if parameter.names[0].startswith("-"):
                options += texts
            elif texts and skipped:
                raise UsageError(f"{skipped} is missing")
            else:
                skipped = skipped or (None if texts else name)
                positional += texts
        return [*self.node.path.split(), *options, "--json", "--", *positional]


class Limits(NamedTuple):
    """What may be sent: so many credits a day, and only to these numbers if they are given."""

    credits: int
    numbers: frozenset[str] | None


class ToolContext(Context):
    """The run of a tool call: its streams are in memory, and it sends within the limits of the server."""

    def __init__(self, server: Context, limits: Limits | None, key: str, *, dry_run: bool) -> None:
        self.output, self.errors = io.BytesIO(), io.BytesIO()
        super().__init__(
            stdin=io.TextIOWrapper(io.BytesIO()),
            stdout=io.TextIOWrapper(self.output, encoding="utf-8", write_through=True),
            stderr=io.TextIOWrapper(self.errors, encoding="utf-8", write_through=True),
            environ=server.environ,
            clock=server.clock,
            monotonic=server.monotonic,
            sleep=server.sleep,
        )
        self.profile = server.profile
        self.options = copy.copy(server.options)
        vars(self.options).update(
            profile=server.profile.name, format=Format.JSON, fields=(), verbose=0, dry_run=dry_run
        )
        self._limits = limits
        self._key = key

    @contextmanager
    def permitted(
        self, operation: Operation, values: Mapping[str, Value], phones: Sequence[str | None]
    ) -> Iterator[Callable[[Sequence[RecipientOutcome]], None]]:
        """Reserve the credits of a send. Raises LimitError, and UsageError for a number that is not in --only-to."""
        from msgctl.history import spending

        if self._limits is None:
            raise UsageError(NOT_ALLOWED)
        allowed = self._limits.numbers
        if others := [str(phone) for phone in phones if allowed is not None and phone not in allowed]:
            raise UsageError(
                f"{', '.join(others[:5])}: not in the file of --only-to", "Ask the user to add the number."
            )
        if operation.effect is not Effect.SENDS:
            yield lambda _: None
            return
        text = values.get("sms")
        each = segments.count(str(text)).segments if text else 1
        account = f"{self.profile.base_url} {self.profile.client}"
        with spending.reserved(
            paths.spending_file(),
            account,
            self._key,
            operation=operation.name,
            estimate=each * len(phones),
            most=self._limits.credits,
            day=self.today(),
        ) as settle:
            yield lambda outcomes: settle(sum(_charged(outcome, each) for outcome in outcomes))


NOT_ALLOWED = "This server only reads: the user did not start msgctl mcp with --max-credits N"
app = group("")


@command(app, "mcp", "msgctl mcp", "msgctl mcp --max-credits 50 --only-to team.txt", panel=HELP)
def serve(
    ctx: typer.Context,
    max_credits: Annotated[
        str | None,
        typer.Option("--max-credits", metavar="N", help="Allow sending, for at most this many credits a day."),
    ] = None,
    only_to: Annotated[
        str | None,
        typer.Option(
            "--only-to",
            metavar="FILE",
            help="Send only to the numbers in this file: one per line, CSV, JSON Lines or .xlsx.",
        ),
    ] = None,
) -> None:
    """Serve the commands as tools to a program that speaks MCP.

    The program starts msgctl and talks to it over standard input and output. It may read: the balance, delivery states,
    jobs and the history. With --max-credits it may also send, block numbers, verify codes and create short URLs.

    The program cannot choose another profile, read a key or name a file on this machine.
    """
    context = Context.of(ctx)
    context.refuse_dry_run("mcp")
    limits = None
    if max_credits is not None:
        most = values.whole_number(max_credits, "--max-credits", 0, MOST_CREDITS)
        limits = Limits(most, None if only_to is None else _numbers(context, only_to))
    elif only_to is not None:
        raise UsageError("--only-to needs --max-credits N")
    try:
        import mcp  # noqa: F401
    except ImportError:
        raise ConfigurationError(
            "msgctl mcp needs the mcp package, which is not installed", "pip install 'msgctl[mcp]'"
        ) from None
    context.enable_gc()
    toolbox = Toolbox(context, ctx.find_root().command, limits)
    with ThreadPoolExecutor() as sends:  # a send in flight ends before msgctl does
        _serve(context, toolbox, sends)


class Toolbox:
    """The tools of one server."""

    def __init__(self, context: Context, root: Any, limits: Limits | None) -> None:
        self._context = context
        self._limits = limits
        self._all = dict(_tools(root, is_sandbox=context.profile.is_sandbox))
        self._session = uuid4()

    @property
    def offered(self) -> dict[str, Tool]:
        return {n: t for n, t in self._all.items() if self._limits is not None or t.effect is Effect.READS}

    def sends(self, name: str) -> bool:
        """Tell whether a tool sends or changes something, so that its call must be carried out to the end."""
        return name in self._all and self._all[name].effect is not Effect.READS

    @property
    def instructions(self) -> str:
        """What a client's model should know."""
        lines = ["msgctl sends SMS, voice calls, verification codes and chat-app messages, and creates short URLs."]
        if self._context.profile.is_sandbox:
            lines.append("This is a sandbox: nothing is really sent.")
        if self._limits is None:
            lines.append(f"{NOT_ALLOWED}.")
        else:
            lines.append(f"Tools that send may spend {self._limits.credits} credits a day. {ONCE_HELP}")
        return " ".join(lines)

    def call(self, name: str, arguments: Mapping[str, Any], request: str | int | None) -> types.CallToolResult:
        """Run the command of a tool; ``request`` is the identifier of the call in this session."""
        from msgctl.cli import run
        from msgctl.history.once import check_key

        given = {name: value for name, value in arguments.items() if value is not None}
        key = str(given.pop(ONCE, f"mcp-{uuid5(self._session, repr(request))}"))
        dry_run = given.pop(DRY_RUN, False) is not False
        context = ToolContext(self._context, self._limits, key, dry_run=dry_run)
        try:
            if name not in self._all:
                raise UsageError(f"Unknown tool {quote(name)}", f"Tools: {', '.join(self.offered)}")
            if name not in self.offered:
                raise UsageError(NOT_ALLOWED)
            tool = self._all[name]
            words = tool.words(given, check_key(key))
        except UsageError as error:
            code = report(error, context)
        else:
            code = run(words, context)
        return _result(code, context.output.getvalue().decode(), context.errors.getvalue().decode(), dry_run=dry_run)


def _serve(context: Context, toolbox: Toolbox, sends: ThreadPoolExecutor) -> None:
    """Answer the client until standard input ends."""
    import asyncio

    import anyio
    import anyio.to_thread
    from mcp import types
    from mcp.server.lowlevel import Server
    from mcp.server.stdio import stdio_server

    stdin: Any = context.stdin
    stdout: Any = context.stdout
    for stream in (stdin, stdout):
        stream.reconfigure(encoding="utf-8", errors="replace")

    async def list_tools(_ctx: object, _params: object) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[_described(name, tool) for name, tool in toolbox.offered.items()])

    async def call_tool(ctx: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        call = partial(toolbox.call, params.name, params.arguments or {}, ctx.request_id)
        if not toolbox.sends(params.name):
            return await anyio.to_thread.run_sync(call, abandon_on_cancel=True)
        return await asyncio.get_running_loop().run_in_executor(sends, call)

    async def serve_streams() -> None:
        async with stdio_server(anyio.wrap_file(stdin), anyio.wrap_file(stdout)) as streams:
            await server.run(*streams, server.create_initialization_options())

    server: Server[Any] = Server(
        "msgctl",
        version=__version__,
        instructions=toolbox.instructions,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )
    anyio.run(serve_streams)


def _tools(root: Any, *, is_sandbox: bool) -> Iterator[tuple[str, Tool]]:
    """Yield the commands that are tools, by the names of the tools."""
    from msgctl.reference.description import describe

    for node in describe(root).nodes:
        is_local = node.path in LOCAL or (is_sandbox and node.path == IN_THE_SANDBOX)
        if node.is_bulk or not (node.operation or is_local):
            continue
        effect = node.operation.effect if node.operation else Effect.READS
        withheld = WITHHELD | WAITING if effect is Effect.SENDS else WITHHELD
        parameters = {_name(each): each for each in (*node.arguments, *node.options) if withheld.isdisjoint(each.names)}
        yield _underscored(node.path), Tool(node, effect, parameters)


def _name(parameter: Parameter) -> str:
    return _underscored(next((name for name in parameter.names if name.startswith("--")), parameter.names[0]))


def _underscored(name: str) -> str:
    return name.lstrip("-").replace("-", "_").replace(" ", "_").lower()


def _schema(parameter: Parameter) -> dict[str, Any]:
    """Return the JSON Schema of a parameter."""
    kind: dict[str, Any] = {"type": "boolean" if parameter.value is None else "string"}
    if parameter.choices:
        kind["enum"] = list(parameter.choices)
    schema = {"type": "array", "items": kind} if parameter.multiple else kind
    default = {} if parameter.default is None else {"default": parameter.default}
    return {**schema, "description": parameter.help, **default}


def _texts(name: str, parameter: Parameter, given: Any) -> list[str]:
    """Return the words for a parameter; none if it was not given. Raises UsageError for a value of another type."""
    option = next((each for each in parameter.names if each.startswith("--")), None)
    if given is None or (parameter.value is None and isinstance(given, bool)):
        negative = next((each for each in parameter.names if each.startswith("--no-")), None)
        return list(filter(None, [option if given else negative])) if given is not None else []
    items = given if isinstance(given, list) and parameter.multiple else [given]
    if parameter.value is None or any(isinstance(each, (bool, dict, list)) or each is None for each in items):
        kind = _schema(parameter)["type"]
        raise UsageError(f"{name} must be {'an' if kind == 'array' else 'a'} {kind}, not {quote(json.dumps(given))}")
    return [f"{option}={each}" if option else str(each) for each in items]


def _described(name: str, tool: Tool) -> types.Tool:
    from mcp import types

    is_read = tool.effect is Effect.READS
    return types.Tool(
        name=name,
        description=tool.node.summary,
        input_schema=tool.schema,
        annotations=types.ToolAnnotations(
            read_only_hint=is_read, destructive_hint=not is_read, open_world_hint=tool.node.operation is not None
        ),
    )


def _result(code: int, out: str, err: str, *, dry_run: bool) -> types.CallToolResult:
    """Return what a command printed: its JSON, and each error as one line of JSON."""
    from mcp import types

    out = out.strip()
    if dry_run and out:
        out = f'{{"{DRY_RUN}": true, "request": {out}}}'
    content: list[types.ContentBlock] = [
        types.TextContent(type="text", text=text) for text in (out, err.strip()) if text
    ]
    plain = types.CallToolResult(content=content, is_error=code != 0)
    with suppress(ValueError, RecursionError):  # not one JSON object, or one that the protocol's library cannot write
        document = json.loads(out)
        if isinstance(document, dict):
            structured = plain.model_copy(update={"structured_content": document})
            structured.model_dump_json()
            return structured
    return plain


def _numbers(context: Context, file: str) -> frozenset[str]:
    """Return the numbers in a file. Raises UsageError."""
    from msgctl.jobs.exclusions import numbers_in

    with campaign.opened(file) as source:
        return frozenset(numbers_in(source, file, known_country(context, None)))


def _charged(outcome: RecipientOutcome, estimate: int) -> int:
    """Return what a recipient cost: what the service says, else nothing if it refused, else the estimate."""
    from msgctl.jobs.spec import charged

    cost = charged(outcome.credits)
    return cost if cost is not None else 0 if outcome.outcome == REFUSED else estimate
