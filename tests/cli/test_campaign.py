"""The right people at the right time: exclusions, repeated jobs, windows, and jobs for later."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from msgctl.history import optouts
from msgctl.jobs.ledger import Ledger
from msgctl.jobs.store import Store
from support.jobs import (
    ANA,
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
    table,
)
from support.service import Service, respond
from support.tool import Tool, process

MONDAY_MORNING = datetime(2026, 11, 23, 15, 0, tzinfo=UTC).timestamp()  # 10:00 in Bogota
OFFICE = ("--window", "08:00-19:00", "--days", "mon-sat")


@pytest.fixture
def jobs(tool: Tool, service: Service) -> Jobs:
    service.always(accepting(service))
    tool.clock.now = MONDAY_MORNING
    return Jobs(tool)


@pytest.fixture
def everyone(home: Path) -> str:
    return of_phones(home, [ANA, LUIS, EVA])


def sent_to(service: Service) -> list[str]:
    return sorted(phone for request in sends(service) for phone in phones(request))


# --- numbers


def test_three_spellings_of_a_number_are_one_person(jobs: Jobs, service: Service, home: Path) -> None:
    file = of_phones(home, ["3001234567", "+57 300 123 4567", "0057 300 1234567", "300-765-4321"])
    job = jobs.send(file, "--country-code", "CO")
    assert sent_to(service) == [ANA, LUIS]
    assert [row["error"] for row in jobs.report(job, "--only", "duplicate")] == ["duplicate of line 2"] * 2


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


def test_the_same_people_may_get_another_template(jobs: Jobs, everyone: str) -> None:
    for template, code in (("hello", 0), ("goodbye", 0), ("hello", 2)):
        assert jobs("chatapp", "bulk", everyone, "Ana", "--template", template, "--yes").code == code


def test_the_same_people_may_hear_another_recording(jobs: Jobs, everyone: str) -> None:
    for audio, code in (("A-1", 0), ("A-2", 0), ("A-1", 2)):
        assert jobs("call", "bulk", everyone, "--audio-code", audio, "--yes").code == code


def test_an_unfinished_job_counts_however_old_it_is(jobs: Jobs, service: Service, tool: Tool, everyone: str) -> None:
    job = jobs.send(everyone, "--at", "2026-12-24 09:00-05:00")
    tool.clock.now += 20 * 86_400
    jobs.sms(everyone, "--yes").refused(2, f"Job {job} already sends this message to 3 of 3 recipients", "job resume")
    jobs.sms(everyone, "--dry-run").refused(2, job)
    assert sends(service) == []


@pytest.mark.parametrize("mode", [0o600, 0o644])
def test_a_recent_ledger_that_cannot_be_read_stops_the_same_job(
    jobs: Jobs, service: Service, tool: Tool, home: Path, everyone: str, mode: int
) -> None:
    job = jobs.send(everyone)
    ledger = folder(home) / f"{job}.sqlite3"
    if mode == 0o600:
        ledger.write_bytes(b"not a ledger" * 1000)
    ledger.chmod(mode)
    os.utime(ledger, (tool.clock.now, tool.clock.now))
    jobs.sms(everyone, "--yes").refused(3, f"Cannot tell whether job {job} sent this message", ledger.name, "--again")
    assert sent_to(service) == sorted([ANA, LUIS, EVA])
    assert jobs.sms(everyone, "--yes", "--again").code == 0
    os.utime(ledger, (tool.clock.now - 86_400, tool.clock.now - 86_400))
    assert jobs.sms(table(home, "phone", "573001111111", name="other.csv"), "--yes").code == 0


def test_of_the_same_job_started_twice_at_once_one_is_refused(service: Service, everyone: str) -> None:
    service.always(accepting(service))
    line = [sys.executable, "-m", "msgctl", "sms", "bulk", everyone, "-m", "Hola", "--yes"]
    started = [subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(3)]
    for each in started:
        each.communicate(timeout=60)
    assert sorted(each.returncode for each in started) == [0, 2, 2]
    assert sent_to(service) == sorted([ANA, LUIS, EVA])


# --- windows


def test_a_job_outside_its_window_waits_and_says_until_when(
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
            assert any("Waiting for the sending window until 20" in line for line in started.stderr)
            shown = process("job", "show", "--last", "--json").document
            assert (shown["state"], shown["until"][14:]) == ("waiting", "00:00Z")
            started.send_signal(number)
        assert started.returncode == (130 if number == signal.SIGINT else -number)
        shown = process("job", "show", "--last", "--json").document
        assert (shown["state"], counts(shown), sends(service)) == ("paused", {"pending": 3}, [])


def test_who_opts_out_while_a_job_waits_for_its_window_gets_nothing(
    jobs: Jobs, service: Service, tool: Tool, everyone: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("msgctl.jobs.runner.CLOCK_CHECK", 0.01)
    tool.clock.now = MONDAY_MORNING - 12 * 3600

    def open_the_window() -> None:
        optouts.add([EVA], tool.clock.now)
        tool.clock.now = MONDAY_MORNING

    timer = threading.Timer(0.5, open_the_window)
    timer.start()
    done = jobs.sms(everyone, *OFFICE, "--yes", "--json")
    timer.join()
    assert (done.code, counts(done.document)) == (0, {"accepted": 2, "excluded": 1})
    assert sent_to(service) == [ANA, LUIS]
    (row,) = [each for each in jobs.report(done.document["job"]) if each["outcome"] == "excluded"]
    assert (row["phone"], row["error"]) == (EVA, "opted out")


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
    assert jobs("job", "resume", job).code == 0
    tool.clock.now += 30 * 86_400
    assert jobs("job", "run-due").out == ""
    assert len(sent_to(service)) == 3


def test_a_due_job_outside_its_window_is_left_for_the_next_call(
    jobs: Jobs, service: Service, tool: Tool, everyone: str
) -> None:
    job = jobs.send(everyone, "--at", "2026-12-01 23:00-05:00", *OFFICE)
    tool.clock.now = datetime(2026, 12, 2, 4, 0, tzinfo=UTC).timestamp()
    assert jobs("job", "run-due").out == ""
    assert (jobs.shown(job)["state"], sends(service)) == ("scheduled", [])
    tool.clock.now += 10 * 3600
    assert "refused" in jobs("job", "run-due").out.splitlines()[0], "a pipe has every field"
    assert len(sent_to(service)) == 3


def test_a_window_that_closes_leaves_the_rest_for_the_next_call(
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


def test_two_calls_at_once_send_a_job_once(service: Service, tool: Tool, everyone: str) -> None:
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


def test_a_job_whose_process_was_killed_is_continued(service: Service, tool: Tool, everyone: str, home: Path) -> None:
    service.always(accepting(service))
    jobs = Jobs(tool)
    tool.clock.now = MONDAY_MORNING - 400 * 86_400
    job = jobs.send(everyone, "--at", "2025-11-01 09:00Z", "--batch-size", "1", "--max-credits", "3")
    killer = (
        "import os, signal, sys\n"
        "from msgctl.__main__ import main\n"
        "from msgctl.jobs.ledger import Ledger\n"
        "Ledger.record = lambda *_: os.kill(os.getpid(), signal.SIGKILL)\n"
        "sys.argv = ['msgctl', 'job', 'run-due']\n"
        "main()\n"
    )
    assert subprocess.run([sys.executable, "-c", killer], check=False, timeout=60).returncode == -9
    before = len(sends(service))
    assert before >= 1
    done = process("job", "run-due", "--json")
    assert done.code == 6, done.err  # what was in flight is unknown
    found = counts(done.document[0])
    assert found["unknown"] + found["accepted"] == 3
    assert sorted(set(sent_to(service))) == sent_to(service)
    assert jobs.shown(job)["state"] == "done"
    reasons = {row["error"] for row in jobs.report(job) if row["outcome"] == "unknown"}
    assert reasons == {"msgctl ended before the response arrived"}


def test_a_due_job_of_which_all_is_unknown_exits_with_6(
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


def test_a_job_that_the_service_refuses_is_left_to_its_user(
    jobs: Jobs, service: Service, tool: Tool, home: Path
) -> None:
    job = jobs.send(
        of_phones(home, [f"57300{n:07}" for n in range(10)]), "--at", "2026-12-01 09:00-05:00", "--batch-size", "1"
    )
    service.always(REFUSAL)
    tool.clock.now += 30 * 86_400
    assert jobs("job", "run-due").code == 1
    before = len(service.received)
    assert jobs("job", "run-due").code == 0
    assert (len(service.received), jobs.shown(job)["state"]) == (before, "paused")


def test_a_service_that_cannot_be_reached_is_tried_again_by_the_next_call(
    jobs: Jobs, service: Service, tool: Tool, everyone: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("msgctl.jobs.workers.PAUSE", 0.0)
    job = jobs.send(everyone, "--at", "2026-12-01 09:00-05:00")
    tool.clock.now += 30 * 86_400
    service.stop()
    assert jobs("job", "run-due").code == 4
    assert (sends(service), jobs.shown(job)["state"]) == ([], "scheduled")


# --- a few first


def test_a_canary_pauses_after_its_recipients_and_resume_sends_the_rest(
    jobs: Jobs, service: Service, home: Path
) -> None:
    file = of_phones(home, [ANA, LUIS, EVA, "573005550100", "573005550101"])
    done = jobs("sms", "bulk", file, "-m", "Hola", "--canary", "2", "--yes", "-o", "tsv")
    assert done.code == 0, done.err
    job = jobs("job", "list", "--json").document[0]["job"]
    assert "Paused after 2 recipients, because of --canary. Resume" in done.err
    assert f"msgctl job resume {job}" in done.err
    assert jobs.shown(job)["state"] == "paused"
    assert sent_to(service) == sorted([ANA, LUIS])
    assert jobs("job", "resume", job).code == 0
    assert len(sent_to(service)) == len(set(sent_to(service))) == 5
    assert counts(jobs.shown(job)) == {"accepted": 5}


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


def test_people_who_opt_out_before_a_scheduled_job_is_sent_get_nothing(
    jobs: Jobs, service: Service, everyone: str
) -> None:
    job = jobs.send(everyone, "--at", "2026-11-24 09:00")
    assert jobs("optout", "add", LUIS).code == 0
    jobs.tool.clock.now += 86_400 * 2
    done = jobs("job", "run-due")
    assert done.code == 0, done.err
    assert "1 recipient opted out after the job was made: nothing is sent to them" in done.err
    assert sorted(sent_to(service)) == sorted([ANA, EVA])
    (row,) = jobs("job", "report", job, "--only", "excluded", "--json").document
    assert (row["phone"], row["error"]) == (LUIS, "opted out")


def test_people_who_opt_out_before_a_job_is_resumed_get_nothing(jobs: Jobs, service: Service, everyone: str) -> None:
    service.always(REFUSAL)
    jobs("sms", "bulk", everyone, "-m", "Hola", "--batch-size", "1", "--concurrency", "1", "--canary", "1", "--yes")
    service.always(accepting(service))
    assert jobs("optout", "add", *sent_to(service), EVA).code == 0
    done = jobs("job", "resume", "--last", "--resend-refused", "--yes", "--json")
    assert done.code == 0, done.err
    found = counts(done.document)
    assert found == {"accepted": 1, "excluded": 2}
    assert sent_to(service).count(EVA) == 0
    assert len(sends(service)) == 2


def test_a_test_message_is_sent_before_the_job(jobs: Jobs, service: Service, home: Path) -> None:
    file = table(home, "phone,name", f"{ANA},Ana", f"{LUIS},Luis")
    done = jobs("sms", "bulk", file, "-m", "Hola {name}", "--test-to", EVA, "--yes")
    assert done.code == 0, done.err
    first, *rest = sends(service)
    assert (phones(first), dict(first.form)["sms"]) == ([EVA], "Hola Ana")
    assert sorted(phone for each in rest for phone in phones(each)) == [ANA, LUIS]


def test_no_test_message_goes_to_someone_who_opted_out(jobs: Jobs, service: Service, home: Path, everyone: str) -> None:
    assert jobs("optout", "add", EVA).code == 0
    done = jobs("sms", "bulk", everyone, "-m", "Hola", "--test-to", f"+{EVA}", "--yes")
    done.refused(2, f"{EVA} has opted out of messages", f"msgctl optout remove {EVA}")
    as_typed = ("--test-to", EVA[2:], "--no-number-check", "--country-code", "CO")
    jobs("sms", "bulk", everyone, "-m", "Hola", *as_typed, "--yes").refused(2, f"{EVA} has opted out of messages")
    assert (service.received, files(home)) == ([], [])


def test_a_test_message_that_fails_stops_the_job(jobs: Jobs, service: Service, home: Path, everyone: str) -> None:
    service.always(REFUSAL)
    done = jobs("sms", "bulk", everyone, "-m", "Hola", "--test-to", EVA, "--yes")
    assert (done.code, len(sends(service)), files(home)) == (1, 1, []), done.err


def test_ctrl_c_at_the_question_says_what_was_sent(
    jobs: Jobs, service: Service, everyone: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object) -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr("msgctl.cli.prompts.ask", interrupt)
    for words, told in (((), "nothing was sent"), (("--test-to", EVA), "only the test message was sent")):
        done = jobs("sms", "bulk", everyone, "-m", "Hola", *words, terminal=True)
        assert (done.code, f"Interrupted; {told}" in done.err) == (130, True), done.err
    assert len(sends(service)) == 1


@pytest.mark.parametrize("more", [(), ("--dry-run",)])
def test_no_test_message_is_sent_without_a_yes(
    more: tuple[str, ...], jobs: Jobs, service: Service, everyone: str
) -> None:
    jobs("sms", "bulk", everyone, "-m", "Hola", "--test-to", EVA, *more)
    assert not sends(service)
