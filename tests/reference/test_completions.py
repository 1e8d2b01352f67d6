"""The completion scripts, each pressed TAB in its real shell: what they offer, and what that costs."""

from __future__ import annotations

import os
import re
import resource
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import pytest
import typer

from msgctl import countries
from msgctl import operations as ops
from msgctl.cli import shells
from msgctl.cli.tree import command, group
from support.programs import program
from support.shells import Bash, Fish, Offers, Terminal, Zsh
from support.terminal import in_a_terminal
from support.tool import Tool, process
from support.tree import COMMANDS, NODES, Node, options

FOLDER = Path(__file__).parent.parent.parent / "completions"
SHELLS = ["bash", "zsh", "fish"]
PROFILES = """
default_profile = "main"
[profiles.main]
key = "[profiles.not-this]"
key_command = '''
pass show msgctl'''
[profiles."with.dot"]
  [ profiles . 'spaced' ]
[profiles.main.more]
[profiles."odd; touch hacked"]
[elsewhere.other]
"""
JOBS = ["20261121-a1", "b2"]

pytestmark = in_a_terminal


def env(folder: Path) -> dict[str, str]:
    return {
        "HOME": str(folder),
        "XDG_CONFIG_HOME": str(folder / "config"),
        "XDG_STATE_HOME": str(folder / "state"),
        "PATH": os.environ["PATH"],
        "LANG": "C.UTF-8",
    }


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with profiles and jobs, and in `work` some files."""
    folder = tmp_path_factory.mktemp("home")
    for name in ("config/msgctl", "state/msgctl/jobs", "work"):
        (folder / name).mkdir(parents=True)
    (folder / "config/msgctl/config.toml").write_text(PROFILES)
    for name in (*JOBS, "odd; touch hacked"):
        (folder / "state/msgctl/jobs" / f"{name}.sqlite3").touch()
    (folder / "state/msgctl/jobs/b2.sqlite3-wal").touch()
    (folder / "work/notice.txt").touch()
    (folder / "work/two words.csv").touch()
    return folder


class Shells:
    """The shells, each started when it is first asked for."""

    def __init__(self, folder: Path, place: Path) -> None:
        self._folder, self._place = folder, place
        self._zsh: Zsh | None = None

    def offers(self, shell: str, *lines: str) -> list[Offers]:
        """What a shell offers at a TAB behind each line."""
        more = (env(self._place), self._place / "work")
        if shell == "bash":
            return Bash(self._folder / "msgctl.bash", *more).offers(lines)
        if shell == "fish":
            return Fish(self._folder / "msgctl.fish", *more).offers(lines)
        self._zsh = self._zsh or Zsh(self._folder, *more)
        return self._zsh.offers(lines)

    def close(self) -> None:
        if self._zsh:
            self._zsh.close()


@pytest.fixture(scope="module")
def at(place: Path) -> Iterator[Shells]:
    found = Shells(FOLDER, place)
    yield found
    found.close()


# --- the files


def test_the_folder_holds_the_three_scripts_and_nothing_else() -> None:
    assert {path.name for path in FOLDER.iterdir()} == {"msgctl.bash", "_msgctl", "msgctl.fish"}


@pytest.mark.parametrize("shell", SHELLS)
def test_the_tool_prints_what_the_folder_holds(shell: str, tool: Tool) -> None:
    kept = (FOLDER / shells.FILES[shell]).read_bytes()
    assert tool("completion", shell).stdout == kept, "write it again with: python -m msgctl.reference"
    assert tool("completion", shell.upper(), "--json").document == {"shell": shell, "script": kept.decode()}


def test_a_script_is_the_same_where_the_locale_knows_no_letters() -> None:
    plain = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    assert process("completion", "fish", env=plain).stdout == (FOLDER / "msgctl.fish").read_bytes()


def test_another_shell_is_a_usage_error(tool: Tool) -> None:
    done = tool("completion", "ksh")
    assert (done.code, done.out) == (2, "")
    assert "bash, zsh, fish" in done.err


# --- what is offered

CASES: dict[str, set[str]] = {
    "msgctl ": set(NODES[0].command.commands),
    "msgctl --json -p main ": set(NODES[0].command.commands),
    "msgctl -vp main ": set(NODES[0].command.commands),
    "msgctl sms s": {"send", "segments"},
    "msgctl sms x": set(),
    "msgctl --profile=main sms s": {"send", "segments"},
    "msgctl call send 573001234567 --voice ": set(ops.CALL_VOICES),
    "msgctl 2fa send-call 573001234567 --voice ": set(ops.VERIFICATION_VOICES),
    "msgctl profile add new --voice ": {*ops.CALL_VOICES, *ops.VERIFICATION_VOICES},
    "msgctl url stats offers --category ": {*ops.PLAIN_CATEGORIES, *ops.PREMIUM_CATEGORIES},
    "msgctl -o ": {"table", "json", "csv", "tsv"},
    "msgctl balance --output ": {"table", "json", "csv", "tsv"},
    "msgctl sms send --country-code ": set(countries.names()),
    "msgctl sandbox inbox --kind ": {"sms", "call", "chatapp"},
    "msgctl completion ": {"bash", "zsh", "fish"},
    "msgctl -p ": {"main", "with.dot", "spaced", "sandbox"},
    "msgctl sms send --profile ": {"main", "with.dot", "spaced", "sandbox"},
    "msgctl profile use ": {"main", "with.dot", "spaced", "sandbox"},
    "msgctl profile remove ": {"main", "with.dot", "spaced"},
    "msgctl sms send -m ": set(),
    "msgctl sms send -- --": set(),
    "msgctl sms send -m -- --gs": {"--gsm7"},
}


@pytest.mark.parametrize("shell", SHELLS)
def test_groups_commands_and_values_are_offered(shell: str, at: Shells) -> None:
    got = {line: set(offers) for line, offers in zip(CASES, at.offers(shell, *CASES), strict=True)}
    assert got == CASES


@pytest.mark.parametrize("shell", SHELLS)
def test_every_command_is_offered_by_its_group_and_has_its_options(shell: str, at: Shells) -> None:
    lines = [f"{' '.join(['msgctl', *node.words])} -" for node in NODES]
    for node, offers in zip(NODES, at.offers(shell, *lines), strict=True):
        assert set(offers) == options(node), node.path


@pytest.mark.parametrize("shell", SHELLS)
def test_values_without_regard_to_case(shell: str, at: Shells) -> None:
    voices, country = at.offers(shell, "msgctl call send 1 --voice mi", "msgctl sms send 1 --country-code cO")
    assert (set(voices), set(country)) == ({"Mia", "Miguel"}, {"CO"})


@pytest.mark.parametrize("shell", SHELLS)
def test_a_value_behind_an_equals_sign(shell: str, at: Shells) -> None:
    before = "" if shell == "bash" else "--output="  # readline takes what follows the sign for the word
    some, one = at.offers(shell, "msgctl --output=", "msgctl balance --output=js")
    assert {name.removeprefix("--output=") for name in some} == {"table", "json", "csv", "tsv"}
    assert set(one) == {f"{before}json"}


GIVEN = {
    "msgctl -o json sms send --": {"--output"},
    "msgctl --output=json sms send --": {"--output"},
    "msgctl -qojson sms send --": {"--output", "--quiet"},
    "msgctl sms send -m Hello --country-code CO --": {"--message", "--country-code"},
    "msgctl call send 1 --no-leave-voicemail --": {"--leave-voicemail", "--no-leave-voicemail"},
    "msgctl sms send -m --gsm7 --": {"--message"},
    "msgctl state watch m1 --until sent --": set(),
    "msgctl sandbox serve --fault drop --fault 503 --allow-ip ::1 --seed 1 --": {"--seed"},
}


@pytest.mark.parametrize("shell", SHELLS)
def test_options_that_were_given_are_not_offered_again(shell: str, at: Shells) -> None:
    by_path = {node.path: node for node in NODES}
    for (line, given), offers in zip(GIVEN.items(), at.offers(shell, *GIVEN), strict=True):
        (path,) = (path for path in by_path if path and re.search(rf" {path} ", line) and " " in path)
        long = {name for name in options(by_path[path]) if name.startswith("--")}
        assert set(offers) == long - given, line


@pytest.mark.parametrize("shell", SHELLS)
def test_an_option_of_api_with_the_name_of_a_common_one_is_its_own(shell: str, at: Shells) -> None:
    (api,) = (node for node in NODES if node.path == "api")
    alone, quiet = at.offers(shell, "msgctl api GET /balance -", "msgctl -q api GET /balance -")
    assert sorted(alone) == sorted(options(api))
    assert set(quiet) == set(alone) - {"--quiet"}


@pytest.mark.parametrize("shell", SHELLS)
def test_options_are_offered_where_there_is_nothing_else(shell: str, at: Shells) -> None:
    (offers,) = at.offers(shell, "msgctl balance check ")
    assert {"--min", "--json"} <= set(offers)


def test_each_offer_of_zsh_has_its_help_in_a_line(place: Path) -> None:
    zsh = Zsh(FOLDER, env(place), place / "work")
    try:
        zsh.tab("msgctl ")
        for name, child in NODES[0].command.commands.items():
            about = child.get_short_help_str(200).replace("`", "").rstrip(".")
            assert re.search(rf"\n{name} +-- {re.escape(about)}", zsh.shown)
        zsh.tab("msgctl sms send -")
        assert re.search(r"\n--gsm7 +-- Write the message with the letters of GSM-7, á as a", zsh.shown)
        assert re.search(r"\n--message +-m +-- Text of the message", zsh.shown)
        assert re.search(r"\n--profile +-p +-- Profile to use", zsh.shown)
    finally:
        zsh.close()


def test_each_offer_of_fish_has_its_help_in_a_line(at: Shells) -> None:
    groups, own = at.offers("fish", "msgctl ", "msgctl sms send -")
    for name, child in NODES[0].command.commands.items():
        assert groups[name].rstrip(".") == child.get_short_help_str(200).replace("`", "").rstrip(".")
    assert own["--gsm7"].startswith("Write the message with the letters of GSM-7, á as a")
    assert own["-m"] == own["--message"] == "Text of the message"
    assert own["--profile"].startswith("Profile to use")


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_files_are_offered(shell: str, at: Shells) -> None:
    word, value, both = at.offers(
        shell, "msgctl sms send --message-file n", "msgctl sms send --message-file=n", "msgctl chatapp send --body "
    )
    assert set(word) == {"notice.txt"}
    assert set(value) == {"--message-file=notice.txt"}
    assert "notice.txt" in both
    assert len(both) > 1


def _a_tree() -> Any:
    """A tree with a command of a job and one of a file."""
    root, jobs = group("All."), group("Jobs.")

    def show(
        ctx: typer.Context,
        job: Annotated[str, typer.Argument(metavar="JOB", help="A job.")],
        only: Annotated[str | None, typer.Option("--only", metavar="OUTCOME", help="Narrow it.")] = None,
    ) -> None: ...

    def bulk(ctx: typer.Context, file: Annotated[str, typer.Argument(metavar="FILE", help="A file.")]) -> None: ...

    command(jobs, "show")(show)
    command(jobs, "bulk")(bulk)
    root.add_typer(jobs, name="job")
    return typer.main.get_command(root)


@pytest.mark.parametrize("shell", SHELLS)
def test_jobs_and_outcomes_and_file_arguments(shell: str, tmp_path: Path, place: Path) -> None:
    for name, file in shells.FILES.items():
        (tmp_path / file).write_text(shells.script(name, _a_tree()))
    at = Shells(tmp_path, place)
    try:
        jobs, second, only, files = at.offers(
            shell, "msgctl job show ", "msgctl job show b2 x", "msgctl job show --only re", "msgctl job bulk n"
        )
    finally:
        at.close()
    assert set(jobs) == set(JOBS)
    assert set(second) == set()
    assert set(only) == {"refused"}
    assert set(files) == {"notice.txt"}


@pytest.mark.parametrize("shell", SHELLS)
def test_no_configuration_and_no_jobs_is_no_fault(shell: str, tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    at = Shells(FOLDER, tmp_path)
    try:
        (profiles,) = at.offers(shell, "msgctl profile show ")
    finally:
        at.close()
    assert set(profiles) == {"sandbox"}


def test_every_value_that_a_field_allows_is_offered(at: Shells) -> None:
    """Walked: a new option with a fixed set of values cannot be forgotten."""
    asked: dict[str, set[str]] = {}
    for node in COMMANDS:
        asked |= {f"msgctl {node.path} {name} ": choices for name, choices in _choices(node)}
    assert len(asked) >= 3
    assert {line: set(offers) for line, offers in zip(asked, at.offers("bash", *asked), strict=True)} == asked


def _choices(node: Node) -> Iterator[tuple[str, set[str]]]:
    """The options of a command whose help lists what is allowed: ``…: Marian, Penelope, ….``"""
    fields = {field.help.rstrip("."): field.choices for each in ops.OPERATIONS for field in each.fields}
    for parameter in node.command.params:
        choices = fields.get((parameter.help or "").partition(":")[0], ())
        if parameter.param_type_name == "option" and choices and choices[0] in (parameter.help or ""):
            yield parameter.opts[-1], {choice for choice in choices if choice in parameter.help.split(": ")[1]}


# --- at a terminal


@pytest.fixture
def bash(place: Path) -> Iterator[Terminal]:
    terminal = Terminal([program("bash"), "--norc", "-i"], env(place), place / "work")
    terminal.prepare(
        f"PS1=; source {FOLDER / 'msgctl.bash'}; PATH=/nowhere; bind 'set bell-style none'; "
        "show() { printf '<<%s>>\\n' \"$READLINE_LINE\"; }; bind -x '\"\\C-t\": show'"
    )
    yield terminal
    terminal.close()


TYPED = {
    "msgctl bal": "msgctl balance ",
    "msgctl sms send --gs": "msgctl sms send --gsm7 ",
    "msgctl call send 1 --voice lu": "msgctl call send 1 --voice Lucia ",
    "msgctl --output=j": "msgctl --output=json ",
    "msgctl --profile=with": "msgctl --profile=with.dot ",
    "msgctl profile add x --base-url https://service.example/api/v1 --key-s": (
        "msgctl profile add x --base-url https://service.example/api/v1 --key-stdin "
    ),
    "msgctl sandbox serve --fault de": "msgctl sandbox serve --fault delay=",
    "msgctl sms send --message-file n": "msgctl sms send --message-file notice.txt ",
    "msgctl sms send --message-file=n": "msgctl sms send --message-file=notice.txt ",
    "msgctl chatapp send --body tw": r"msgctl chatapp send --body two\ words.csv ",
    "msgctl sms segments < n": "msgctl sms segments < notice.txt ",
    "msgctl sms segments 2>n": "msgctl sms segments 2>notice.txt ",
    "echo x | msgctl sms send 'a b' -m \"x y\" --gs": "echo x | msgctl sms send 'a b' -m \"x y\" --gsm7 ",
}


def test_a_tab_in_bash(bash: Terminal) -> None:
    got = {line: bash.tab(line) for line in TYPED}
    assert got == TYPED


def test_a_tab_in_bash_where_words_do_not_break_at_an_equals_sign(bash: Terminal) -> None:
    bash.prepare("COMP_WORDBREAKS=${COMP_WORDBREAKS//[=:]/}")
    lines = [line for line in TYPED if "=" in line and "file" not in line]
    assert [bash.tab(line) for line in lines] == [TYPED[line] for line in lines]


def test_the_first_tab_in_zsh_loads_the_script_and_completes(place: Path) -> None:
    zsh = Zsh(FOLDER, env(place), place / "work")
    try:
        assert zsh.tab("msgctl sms send --gs") == "msgctl sms send --gsm7 "
    finally:
        zsh.close()


def test_zsh_takes_the_script_with_eval_too(place: Path) -> None:
    zsh = Zsh(place, env(place), place / "work")  # a folder without the script
    try:
        script = FOLDER / "_msgctl"
        zsh.prepare(f'eval "$(<{script})"')
        assert zsh.tab("msgctl sms send --gs") == "msgctl sms send --gsm7 "
    finally:
        zsh.close()


# --- what it costs


def test_a_tab_in_bash_starts_no_process_and_costs_less_than_5_ms(place: Path) -> None:
    text = (FOLDER / "msgctl.bash").read_text()
    assert re.findall(r"\$\((?!\()|<\(|`", re.sub(r"(?m)^ *#.*", "", text)) == []
    shell = Bash(FOLDER / "msgctl.bash", env(place), place / "work")
    lines = [
        "msgctl ",
        "msgctl -p ",
        "msgctl sms send --country-code ",
        "msgctl --profile main --output=json sms send 573001234567 -m Hello --country-code CO --",
    ]
    for line in lines:
        used = [_cpu(shell, shell.call(line) * times) for times in (1, 101)]
        assert (used[1] - used[0]) / 100 < 0.005, line


def _cpu(shell: Bash, code: str) -> float:
    """The seconds of processor time that a run of bash takes."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    shell.run(code)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
