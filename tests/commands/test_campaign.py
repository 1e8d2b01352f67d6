"""The right people at the right time: exclusions, repeated jobs, windows, and jobs for later."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import threading
from contextlib import closing
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest

from msgctl.jobs.ledger import Ledger
from msgctl.jobs.schedule import described
from msgctl.jobs.store import Store
from msgctl.storage.files import state
from msgctl.store import people as people_of_store
from msgctl.store.store import open_store
from support.jobs import (
    ANA,
    BALANCE,
    EVA,
    LUIS,
    REFUSAL,
    Jobs,
    accepting,
    counts,
    files,
    folder,
    of_phones,
    phones,
    sends,
    sent_to,
    table,
)
from support.service import Service, respond
from support.terminal import Terminal, in_a_terminal
from support.tool import Tool, process

MONDAY_MORNING = datetime(2026, 11, 23, 15, 0, tzinfo=UTC).timestamp()  # 10:00 in Bogota
OFFICE = ("--window", "08:00-19:00", "--days", "mon-sat")


@pytest.fixture
def jobs(tool: Tool, service: Service) -> Jobs:
    service.always(accepting(service))
    tool.clock.now = MONDAY_MORNING
    return Jobs(tool)


# --- numbers


@pytest.mark.parametrize(
    ("number", "reason"),
    [
        ("601 234 5678", "fixed line"),
        ("34612345678", "valid only in Spain; if that is right, write it with +"),
    ],
)
def test_a_wrong_number_stops_the_job_with_its_line_and_reason(
    number: str, reason: str, jobs: Jobs, service: Service, home: Path
) -> None:
    file = of_phones(home, [ANA, number])
    jobs.sms(file, "--yes", "--country-code", "CO").refused(2, "line 3", reason)
    assert sends(service) == []
    jobs.send(file, "--country-code", "CO", "--skip-invalid")
    assert sent_to(service) == [ANA]


def test_numbers_for_calls_may_be_fixed_lines(jobs: Jobs, service: Service, home: Path) -> None:
    file = of_phones(home, ["601 234 5678"])
    assert jobs("call", "bulk", file, "-m", "Hola", "--voice", "Mia", "--country-code", "CO", "--yes").code == 0
    assert sent_to(service) == ["576012345678"]


def test_unchecked_numbers_are_sent_as_they_are(jobs: Jobs, service: Service, home: Path) -> None:
    jobs.send(of_phones(home, ["89 12 34", "57 300"]), "--no-number-check")
    assert sent_to(service) == ["57300", "891234"]


# --- exclusions


@pytest.mark.every_set
def test_excluded_and_opted_out_numbers_get_nothing_and_cost_nothing(
    jobs: Jobs, service: Service, tool: Tool, home: Path
) -> None:
    excluded = home / "stop.txt"
    excluded.write_text("300 765 4321\n")
    assert tool("optout", "add", EVA).code == 0
    everyone = table(home, "phone,name", f"{ANA},Ana", f"{LUIS},Luis", f"{EVA},Eva")
    plan = jobs.sms(everyone, "--dry-run", "--json").document
    assert (plan["excluded"], plan["messages"], plan["credits"]) == (1, 2, 2)
    assert plan["excluded_rows"] == [{"line": 4, "phone": EVA, "reason": "opted out"}]
    job = jobs.send(everyone, "--exclude", str(excluded), "--country-code", "CO")
    assert sent_to(service) == [ANA]
    shown = jobs.shown(job)
    assert counts(shown) == {"accepted": 1, "excluded": 2}
    assert shown["credits"] == 1
    rows = [(row["name"], row["outcome"], row["error"]) for row in jobs.report(job, "--only", "excluded")]
    assert rows == [("Luis", "excluded", "excluded by stop.txt"), ("Eva", "excluded", "opted out")]
    plan = jobs.sms(everyone, "--dry-run", "--json", "--exclude", "-", stdin=f"{ANA}\n").document
    assert plan["excluded_rows"][0]["reason"] == "excluded by standard input"


@pytest.mark.parametrize(
    ("command", "channel"),
    [
        (("sms", "bulk", "-m", "Hello"), "sms"),
        (("call", "bulk", "-m", "Hello", "--voice", "Mia"), "call"),
        (("chatapp", "bulk", "--template", "t", "name"), "chatapp"),
    ],
    ids=" ".join,
)
def test_a_job_leaves_out_people_who_opted_out_of_its_channel(
    command: tuple[str, ...], channel: str, jobs: Jobs, service: Service, home: Path
) -> None:
    file = table(home, "phone,name", f"{ANA},Ana", f"{LUIS},Luis", f"{EVA},Eva")
    (other, *_) = sorted({"sms", "call", "chatapp"} - {channel})
    for phone, of in ((ANA, channel), (LUIS, other), (EVA, "all")):
        assert jobs("optout", "add", phone, "--channel", of).code == 0
    line = (*command[:2], file, *command[2:])
    jobs(*line, "--test-to", ANA, "--yes").refused(2, f"{ANA} has opted out")
    done = jobs(*line, "--test-to", LUIS, "--canary", "1", "--yes", "--json")
    assert (done.code, counts(done.document)) == (0, {"accepted": 1, "excluded": 2}), done.err
    assert sent_to(service) == [LUIS, LUIS]


def test_resume_sends_to_people_who_opted_out_of_another_channel(jobs: Jobs, service: Service, everyone: str) -> None:
    job = jobs.send(everyone, "--canary", "1")
    for phone, channel in ((LUIS, "call"), (EVA, "sms")):
        assert jobs("optout", "add", phone, "--channel", channel).code == 0
    done = jobs("job", "resume", job, "--json")
    assert (done.code, counts(done.document)) == (0, {"accepted": 2, "excluded": 1}), done.err
    assert sent_to(service) == [ANA, LUIS]


def test_unchecked_national_numbers_are_excluded_too(jobs: Jobs, service: Service, home: Path) -> None:
    exclude = home / "no.txt"
    exclude.write_text("+57 300 765 4321\n")
    assert jobs("optout", "add", ANA).code == 0
    file = of_phones(home, [ANA[2:], LUIS[2:], EVA[2:], "12345"])
    words = ("--no-number-check", "--country-code", "CO", "--exclude", str(exclude))
    service.will(respond({"status": 1000}), REFUSAL)
    job = jobs.send(file, *words, code=6)
    assert sent_to(service) == ["12345", EVA[2:]]
    assert jobs("optout", "add", EVA).code == 0
    done = jobs("job", "resend", job, "--only", "refused", "--yes", "--json")
    assert (done.code, counts(done.document)) == (0, {"accepted": 1, "excluded": 1})
    assert sent_to(service) == ["12345", "12345", EVA[2:]]


def test_a_wrong_line_in_a_file_of_exclusions_stops_the_job(
    jobs: Jobs, service: Service, everyone: str, home: Path
) -> None:
    excluded = home / "stop.txt"
    excluded.write_text(f"{LUIS}\n57300\n")
    jobs.sms(everyone, "--yes", "--exclude", str(excluded)).refused(2, "Line 2", "too short for Colombia")
    jobs.sms(everyone, "--yes", "--exclude", "nowhere.txt").refused(2, "Cannot read")
    assert (sends(service), files(home)) == ([], [])


# --- the same job again


def test_the_same_job_is_refused_for_a_day(jobs: Jobs, service: Service, tool: Tool, home: Path, everyone: str) -> None:
    job = jobs.send(everyone)
    shuffled = table(home, "name;phone", f"x;+{EVA}", f"y;{ANA}", "z;+57 300 765 4321", "w;573001111111", name="2.csv")
    jobs.sms(shuffled, "--yes").refused(2, f"Job {job} sent this message to 3 of 4 recipients", "job resume", "--again")
    half = table(home, "phone", EVA, ANA, "573001111111", "573002222222", name="half.csv")
    assert jobs.sms(half, "--dry-run").code == 0
    tool.clock.now += 86_399
    jobs.sms(everyone, "--yes").refused(2, job)
    assert len(files(home)) == len(set(files(home))) > 0
    assert sent_to(service) == sorted([ANA, LUIS, EVA])
    jobs.send(everyone, "--again")
    assert len(sent_to(service)) == 6
    tool.clock.now += 86_400
    assert jobs.sms(everyone, "--yes").code == 0


def test_a_test_message_does_not_count_as_a_repeat(jobs: Jobs, service: Service, home: Path) -> None:
    assert jobs.sms(of_phones(home, [ANA]), "--test-to", ANA, "--yes").code == 0
    assert sent_to(service) == [ANA, ANA]


def test_a_job_that_begins_during_the_question_counts(
    jobs: Jobs, service: Service, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    people = [ANA, LUIS, EVA]
    file, first = of_phones(home, people), table(home, "phone", ANA, name="first.csv")

    def ask(*_: object) -> str:
        with monkeypatch.context() as other:
            other.setattr("msgctl.cli.prompts.ask", lambda *_: "y")
            jobs.send(first)
        return "y"

    monkeypatch.setattr("msgctl.cli.prompts.ask", ask)
    done = jobs.sms(file, "--exclude-repeats", terminal=True)
    assert (done.code, "1 of 3 recipients" in done.err) == (0, True), done.err
    assert sent_to(service) == sorted(people)


def test_removing_a_recent_job_warns_that_its_repeats_will_not_be_noticed(
    jobs: Jobs, service: Service, tool: Tool, everyone: str
) -> None:
    job = jobs.send(everyone)
    warning = "msgctl will no longer notice repeats."
    assert warning in jobs("job", "remove", job, stdin="n\n", terminal=True).err
    tool.clock.now += 86_400
    assert warning not in jobs("job", "remove", job, stdin="n\n", terminal=True).err


def test_the_same_account_in_another_spelling_counts(
    jobs: Jobs, service: Service, everyone: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = jobs.send(everyone, "--canary", "2")
    monkeypatch.setenv("MSGCTL_BASE_URL", f"HTTP://127.0.0.1:{service.port}/./api/v1/")
    jobs.sms(everyone, "--yes").refused(2, f"Job {job} already sends this message to 3 of 3 recipients")
    assert jobs("job", "resume", job).code == 0
    assert sent_to(service) == sorted([ANA, LUIS, EVA])


def test_the_same_people_may_hear_another_recording(jobs: Jobs, everyone: str) -> None:
    for audio, code in (("A-1", 0), ("A-2", 0), ("A-1", 2)):
        assert jobs("call", "bulk", everyone, "--audio-code", audio, "--yes").code == code


def test_an_unfinished_job_counts_however_old_it_is(jobs: Jobs, service: Service, tool: Tool, everyone: str) -> None:
    job = jobs.send(everyone, "--at", "2026-12-24 09:00-05:00")
    tool.clock.now += 20 * 86_400
    jobs.sms(everyone, "--yes").refused(2, f"Job {job} already sends this message to 3 of 3 recipients", "job resume")
    jobs.sms(everyone, "--dry-run").refused(2, job)
    assert sends(service) == []


def test_a_recent_ledger_that_cannot_be_read_stops_the_same_job(
    jobs: Jobs, service: Service, tool: Tool, home: Path, everyone: str
) -> None:
    job = jobs.send(everyone)
    ledger = folder(home) / f"{job}.sqlite3"
    ledger.write_bytes(b"not a ledger" * 1000)
    os.utime(ledger, (tool.clock.now, tool.clock.now))
    jobs.sms(everyone, "--yes").refused(3, f"Cannot check whether job {job} sent this message", ledger.name, "--again")
    assert sent_to(service) == sorted([ANA, LUIS, EVA])
    done = jobs.sms(everyone, "--yes", "--again", "-q")
    assert (done.code, done.err.count("Warning: "), done.err.count(ledger.name)) == (0, 1, 1)
    os.utime(ledger, (tool.clock.now - 86_400, tool.clock.now - 86_400))
    assert jobs.sms(table(home, "phone", "573001111111", name="other.csv"), "--yes").code == 0


def test_a_job_started_twice_at_once_is_refused_once(service: Service, everyone: str) -> None:
    service.always(accepting(service))
    line = [sys.executable, "-m", "msgctl", "sms", "bulk", everyone, "-m", "Hola", "--yes"]
    started = [subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(3)]
    for each in started:
        each.communicate(timeout=60)
    assert sorted(each.returncode for each in started) == [0, 2, 2]
    assert sent_to(service) == sorted([ANA, LUIS, EVA])


# --- windows


def test_a_job_outside_its_window_waits_and_shows_until_when(
    service: Service, everyone: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a real process with a real clock: it is killed while it waits, resumed, and paused by Ctrl-C."""
    service.always(accepting(service))
    monkeypatch.setenv("TZ", "America/Bogota")
    hour = (datetime.now(UTC).hour - 5) % 24  # in Bogota; the window is closed for some hours
    window = f"{(hour + 2) % 24:02}:00-{(hour + 2) % 24:02}:30"
    bulk = ["sms", "bulk", everyone, "-m", "Hola", "--yes", "--window", window]
    for line, number in ((bulk, signal.SIGKILL), (["job", "resume", "--last"], signal.SIGINT)):
        with subprocess.Popen([sys.executable, "-m", "msgctl", *line], stderr=subprocess.PIPE, text=True) as started:
            assert started.stderr is not None
            assert any("Waiting for the sending window until" in line for line in started.stderr)
            shown = process("job", "show", "--last", "--json").document
            assert (shown["state"], shown["until"][14:]) == ("waiting", "00:00Z")
            started.send_signal(number)
        assert started.returncode == (130 if number == signal.SIGINT else -number)
        shown = process("job", "show", "--last", "--json").document
        assert (shown["state"], counts(shown), sends(service)) == ("paused", {"pending": 3}, [])


@in_a_terminal
def test_the_summary_the_progress_and_job_show_mention_a_closed_window(
    service: Service, everyone: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    service.always(accepting(service))
    monkeypatch.setenv("TZ", "America/Bogota")
    bogota = timezone(timedelta(hours=-5))
    opens = (datetime.now(bogota) + timedelta(hours=2)).replace(minute=0)
    hours = f"{opens:%H:%M}-{opens:%H}:30"
    line = ("sms", "bulk", everyone, "-m", "Hola", "--name", "mayo", "--window", hours)
    terminal = Terminal(*line, columns=100, env={"NO_COLOR": "1", "TERM": "xterm"})
    moment = f"{opens:%a} {opens.day} {opens:%b %H:%M}"
    terminal.answer("messages for about 3 credits? [y/N] ", b"y\n")
    assert f"Window       {hours.replace('-', '–')}, recipient's time · opens {moment}" in terminal.shown.decode()
    assert terminal.read_until(f"○ waiting until {moment} · Ctrl-C pauses".encode())
    terminal.write(b"\x03")
    assert terminal.read_until(b"Resume[^\n]*: msgctl job resume mayo\r")
    assert terminal.end() == 130
    shown = process("job", "show", "mayo", "--json").document
    assert (shown["state"], shown["window"]) == ("paused", hours)
    assert datetime.fromisoformat(shown["opens"]) == opens.replace(second=0, microsecond=0)


@pytest.mark.parametrize(
    ("hours", "days", "shown"),
    [
        ("8-19", None, "08:00-19:00"),
        ("08:00-19:00", "mon-sat", "Mon-Sat 08:00-19:00"),
        ("08:00-19:30", "mon,wed-thu", "Mon,Wed-Thu 08:00-19:30"),
        ("co", None, "Mon-Fri 07:00-19:00, Sat 08:00-15:00, not on public holidays"),
    ],
)
def test_a_window_is_described_in_words(hours: str, days: str | None, shown: str) -> None:
    assert described(hours, days) == shown


def test_a_scheduled_time_outside_the_window_is_a_warning_with_both_times(
    jobs: Jobs, service: Service, tool: Tool, everyone: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    service.always(accepting(service))
    tool.clock.now = MONDAY_MORNING
    done = jobs.sms(everyone, *OFFICE, "--at", "2026-11-23T23:00-05:00", "--yes")
    (warning,) = [line for line in done.err.splitlines() if line.startswith("Warning")]
    time = r"2026-11-2\d \d\d:\d\d \S+"
    assert re.fullmatch(
        rf"Warning: The window is closed at that time \(\w+ {time}\): the job waits until Tue {time}", warning
    )


def opt_out_of(entries: list[tuple[str, str]]) -> None:
    """Add people to the opt-outs, with their channels, as another process does."""
    with closing(open_store(state("store.sqlite3"))) as store:
        people_of_store.add_optouts(store, entries)


def test_people_who_opt_out_while_a_job_waits_for_its_window_get_nothing(
    jobs: Jobs, service: Service, tool: Tool, everyone: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("msgctl.jobs.runner.CLOCK_CHECK", 0.01)
    tool.clock.now = MONDAY_MORNING - 12 * 3600

    def open_the_window() -> None:
        opt_out_of([(EVA, "all")])
        tool.clock.now = MONDAY_MORNING

    timer = threading.Timer(0.5, open_the_window)
    timer.start()
    done = jobs.sms(everyone, *OFFICE, "--yes", "--json")
    timer.join()
    assert (done.code, counts(done.document)) == (0, {"accepted": 2, "excluded": 1})
    assert sent_to(service) == [ANA, LUIS]
    (row,) = [each for each in jobs.report(done.document["job"]) if each["outcome"] == "excluded"]
    assert (row["phone"], row["error"]) == (EVA, "opted out")


# --- opt-outs while a job runs


@pytest.mark.parametrize("size", ["1", "2"])
def test_people_who_opt_out_while_a_job_runs_get_nothing_more(
    size: str, jobs: Jobs, service: Service, tool: Tool, home: Path
) -> None:
    """Recipients that were already read ahead get nothing either, and the others in their request do."""
    people = [f"57300{number:07}" for number in range(9)]

    def opt_out() -> None:
        if len(sends(service)) == 1:
            opt_out_of([(people[4], "all"), (people[8], "sms"), (people[6], "call")])

    service.always(accepting(service, look=opt_out))
    job = jobs.send(of_phones(home, people), "--batch-size", size)
    assert sent_to(service) == [each for each in people if each not in (people[4], people[8])]
    assert counts(jobs.shown(job)) == {"accepted": 7, "excluded": 2}
    rows = [(row["phone"], row["error"]) for row in jobs.report(job, "--only", "excluded")]
    assert rows == [(people[4], "opted out"), (people[8], "opted out")]


def test_an_opt_out_counts_in_a_running_process(service: Service, home: Path) -> None:
    people = [f"57300{number:07}" for number in range(200)]
    arrivals, responses = threading.Semaphore(0), threading.Semaphore(40)

    def respond_in_turn() -> None:
        arrivals.release()
        responses.acquire(timeout=20)

    service.always(accepting(service, look=respond_in_turn))
    line = [sys.executable, "-m", "msgctl", "sms", "bulk", of_phones(home, people), "-m", "Hola", "--batch-size=1"]
    with subprocess.Popen([*line, "--yes"], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as started:
        assert all(arrivals.acquire(timeout=20) for _ in range(40))
        assert process("optout", "add", people[150]).code == 0
        responses.release(40)
        assert all(arrivals.acquire(timeout=20) for _ in range(40))
        assert process("optout", "add", people[199]).code == 0
        responses.release(200)
        started.communicate(timeout=60)
    assert sent_to(service) == [each for each in people if each not in (people[150], people[199])]


def test_two_spellings_of_an_unchecked_number_are_one_person(jobs: Jobs, service: Service, home: Path) -> None:
    file = of_phones(home, [ANA[2:], f"+{ANA}", "12345"])
    job = jobs.send(file, "--no-number-check", "--country-code", "CO")
    assert sent_to(service) == ["12345", ANA[2:]]
    assert [row["error"] for row in jobs.report(job, "--only", "duplicate")] == ["duplicate of line 2"]


def test_several_phones_get_the_test_message(jobs: Jobs, service: Service, home: Path) -> None:
    file = table(home, "phone,name", f"{ANA},Ana", f"{LUIS},Luis")
    other = "573005550199"
    to = ("--test-to", EVA, "--test-to", f"+{other}", "--test-to", EVA)
    done = jobs("sms", "bulk", file, "-m", "Hola {name}", *to, "--yes")
    assert f"Test message sent to {EVA}, {other}.\n" in done.err
    assert [phones(each) for each in sends(service)[:1]] == [[EVA, other]]
    service.received.clear()
    template = ("--template", "t", "name")
    jobs("chatapp", "bulk", file, *template, *to, stdin="n\n", terminal=True)
    assert [phones(each) for each in sends(service)] == [[EVA], [other]]
    assert jobs("optout", "add", other).code == 0
    jobs("sms", "bulk", file, "-m", "Hola {name}", *to, "--yes", "--again").refused(2, f"{other} has opted out")


def test_people_who_opt_out_while_the_file_is_read_get_no_test_message(
    jobs: Jobs, service: Service, tool: Tool, everyone: str
) -> None:
    accept = accepting(service)

    def behave(connection: socket.socket) -> None:
        opt_out_of([(ANA, "all")])
        accept(connection)

    service.always(behave)
    jobs.sms(everyone, "--test-to", ANA, "--yes").refused(2, f"{ANA} has opted out of SMS")
    assert sends(service) == []


# --- later


def test_a_job_for_later_is_sent_once_by_run_due(jobs: Jobs, service: Service, tool: Tool, everyone: str) -> None:
    job = jobs.send(everyone, "--at", "2026-12-01 09:00-05:00")
    shown = jobs.shown(job)
    assert (shown["state"], shown["until"], counts(shown)) == ("scheduled", "2026-12-01T14:00:00Z", {"pending": 3})
    nothing = jobs("job", "run-due")
    assert (nothing.code, nothing.out, nothing.err) == (0, "", "")
    tool.clock.now = datetime(2026, 12, 1, 14, 0, tzinfo=UTC).timestamp()
    done = jobs("job", "run-due", "--json")
    assert (done.code, [each["state"] for each in done.document]) == (0, ["done"])
    assert jobs("job", "run-due", "--json").document == []
    assert sent_to(service) == sorted([ANA, LUIS, EVA])


def test_the_question_about_a_scheduled_job_mentions_its_time(
    jobs: Jobs, service: Service, everyone: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs("profile", "add", "shop", "--base-url", service.base_url, "--client", "1", "--key-stdin", stdin="key\n")
    assert jobs("profile", "set", "shop", "--timezone", "America/Bogota").code == 0
    for name in ("BASE_URL", "CLIENT", "KEY"):
        monkeypatch.delenv(f"MSGCTL_{name}")
    time = "Tue 2026-11-24 09:00 America/Bogota"
    asked = jobs.sms(everyone, "--at", "2026-11-24 09:00", terminal=True, stdin="n\n")
    assert f"Schedule 3 messages for {time}, for about 3 credits? [y/N]" in asked.err
    assert asked.err.count(time) == 2
    assert f"The job would be scheduled for {time}." in jobs.sms(everyone, "--at", "2026-11-24 09:00", "-n").err
    assert f"Scheduled for {time}." in jobs.sms(everyone, "--at", "2026-11-24 09:00", "--name", "x", "--yes").err
    assert f"is scheduled for {time}" in jobs("job", "resume", "x").err


def test_due_jobs_are_sent_in_the_order_of_their_times(jobs: Jobs, service: Service, tool: Tool, everyone: str) -> None:
    hours = ["11:00", "09:00", "10:00", "09:00", "08:00"]
    made: list[str] = []
    for hour in hours:
        made.append(jobs.send(everyone, "--at", f"2026-12-01 {hour}Z", text=f"{hour} {len(made)}"))
        tool.clock.now += 0.01
    tool.clock.now = datetime(2026, 12, 2, tzinfo=UTC).timestamp()
    done = jobs("job", "run-due", "--json")
    assert [each["job"] for each in done.document] == [made[place] for place in (4, 1, 3, 2, 0)]


def test_a_job_for_later_can_be_sent_now(jobs: Jobs, service: Service, tool: Tool, everyone: str) -> None:
    job = jobs.send(everyone, "--at", "2026-12-01 09:00-05:00")
    assert jobs("job", "resume", job, "--yes").code == 0
    tool.clock.now += 30 * 86_400
    assert jobs("job", "run-due").out == ""
    assert len(sent_to(service)) == 3


def test_a_due_job_outside_its_window_is_left_for_the_next_run(
    jobs: Jobs, service: Service, tool: Tool, everyone: str
) -> None:
    job = jobs.send(everyone, "--at", "2026-12-01 23:00-05:00", *OFFICE)
    tool.clock.now = datetime(2026, 12, 2, 4, 0, tzinfo=UTC).timestamp()
    assert jobs("job", "run-due").out == ""
    assert (jobs.shown(job)["state"], sends(service)) == ("scheduled", [])
    tool.clock.now += 10 * 3600
    assert "refused" in jobs("job", "run-due").out.splitlines()[0], "a pipe has every field"
    assert len(sent_to(service)) == 3


def test_a_window_that_closes_leaves_the_rest_for_the_next_run(
    jobs: Jobs, service: Service, tool: Tool, everyone: str
) -> None:
    def until_evening() -> None:
        tool.clock.now += 8 * 3600

    service.always(accepting(service, look=until_evening))
    job = jobs.send(everyone, "--at", "2026-12-01 09:00-05:00", "--batch-size", "1", *OFFICE)
    tool.clock.now = datetime(2026, 12, 1, 14, 0, tzinfo=UTC).timestamp()
    done = jobs("job", "run-due", "--json")
    assert (done.code, done.document[0]["state"], counts(done.document[0])) == (
        0, "scheduled", {"accepted": 2, "pending": 1},
    )  # fmt: skip
    tool.clock.now = datetime(2026, 12, 2, 14, 0, tzinfo=UTC).timestamp()
    assert jobs("job", "run-due").code == 0
    assert sent_to(service) == sorted([ANA, LUIS, EVA])
    assert jobs.shown(job)["state"] == "done"


def test_two_runs_at_once_send_a_job_once(service: Service, tool: Tool, everyone: str) -> None:
    service.always(accepting(service))
    jobs = Jobs(tool)
    tool.clock.now = MONDAY_MORNING - 400 * 86_400  # due long before the time of the real clock
    jobs.send(everyone, "--at", "2025-11-01 09:00Z")
    line = [sys.executable, "-m", "msgctl", "job", "run-due"]
    started = [subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(3)]
    for each in started:
        each.communicate(timeout=60)
    assert [each.returncode for each in started] == [0, 0, 0]
    assert sent_to(service) == sorted([ANA, LUIS, EVA])


def test_a_due_job_with_only_unknown_outcomes_exits_with_6(
    jobs: Jobs, service: Service, tool: Tool, everyone: str, home: Path
) -> None:
    """Its process was killed while it waited for the last responses."""
    job = jobs.send(everyone, "--at", "2026-12-01 09:00-05:00")
    with closing(Ledger(Store(folder(home)).path(job), clock=tool.clock)) as ledger, ledger.transaction():
        assert ledger.intend(3)
    tool.clock.now += 30 * 86_400
    done = jobs("job", "run-due")
    assert (done.code, "0 of 3 recipients accepted, 3 unknown" in done.err) == (6, True), done.err
    assert jobs("job", "run-due").code == 0
    assert sends(service) == []


# --- a few first


def test_the_error_of_a_refused_canary_shows_how_to_resume(jobs: Jobs, service: Service, home: Path) -> None:
    service.will(BALANCE, REFUSAL)
    sending = ("sms", "bulk", of_phones(home, [ANA, LUIS]), "-m", "Hola", "--canary", "1", "--yes", "--once", "x")
    for done in (jobs(*sending), jobs(*sending)):
        assert done.code == 6
        assert done.err.splitlines()[-1].startswith("Resume")


@pytest.mark.every_set
def test_a_refused_canary_exits_with_6(jobs: Jobs, service: Service, everyone: str) -> None:
    service.always(REFUSAL)
    done = jobs("sms", "bulk", everyone, "-m", "Hola", "--canary", "1", "--yes")
    assert (done.code, len(sends(service))) == (6, 1), done.err


def test_a_scheduled_canary_waits_for_its_user(jobs: Jobs, service: Service, everyone: str) -> None:
    jobs("sms", "bulk", everyone, "-m", "Hola", "--at", "2026-11-24 09:00", "--canary", "1", "--yes")
    jobs.tool.clock.now += 86_400 * 2
    assert jobs("job", "run-due").code == 0
    assert jobs("job", "run-due").out == ""
    assert len(sent_to(service)) == 1


def test_a_test_message_is_sent_before_the_job(jobs: Jobs, service: Service, home: Path) -> None:
    file = table(home, "phone,name", f"{ANA},Ana", f"{LUIS},Luis")
    done = jobs("sms", "bulk", file, "-m", "Hola {name}", "--test-to", EVA, "--yes")
    assert done.code == 0, done.err
    first, *rest = sends(service)
    assert (phones(first), dict(first.form)["sms"]) == ([EVA], "Hola Ana")
    assert sorted(phone for each in rest for phone in phones(each)) == [ANA, LUIS]


def test_people_who_opted_out_get_no_test_message(jobs: Jobs, service: Service, home: Path, everyone: str) -> None:
    assert jobs("optout", "add", EVA).code == 0
    done = jobs("sms", "bulk", everyone, "-m", "Hola", "--test-to", f"+{EVA}", "--yes")
    done.refused(2, f"{EVA} has opted out of SMS", f"msgctl optout remove {EVA} --channel sms")
    as_typed = ("--test-to", EVA[2:], "--no-number-check", "--country-code", "CO")
    jobs("sms", "bulk", everyone, "-m", "Hola", *as_typed, "--yes").refused(2, f"{EVA} has opted out of SMS")
    assert (service.received, files(home)) == ([], [])


def test_a_test_message_that_fails_stops_the_job(jobs: Jobs, service: Service, home: Path, everyone: str) -> None:
    service.always(REFUSAL)
    done = jobs("sms", "bulk", everyone, "-m", "Hola", "--test-to", EVA, "--yes")
    assert (done.code, len(sends(service)), files(home)) == (1, 1, []), done.err


def test_ctrl_c_at_the_question_reports_the_test_message(
    jobs: Jobs, service: Service, everyone: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object) -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr("msgctl.cli.prompts.ask", interrupt)
    for words, printed in (((), "nothing was sent"), (("--test-to", EVA), "only the test message was sent")):
        done = jobs("sms", "bulk", everyone, "-m", "Hola", *words, terminal=True)
        assert (done.code, f"Interrupted; {printed}" in done.err) == (130, True), done.err
    assert len(sends(service)) == 1


@pytest.mark.parametrize("more", [(), ("--dry-run",)])
def test_no_test_message_is_sent_without_confirmation(
    more: tuple[str, ...], jobs: Jobs, service: Service, everyone: str
) -> None:
    jobs("sms", "bulk", everyone, "-m", "Hola", "--test-to", EVA, *more)
    assert not sends(service)
