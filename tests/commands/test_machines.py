"""Several machines that share their records: no one gets a message twice, and every reported outcome is right."""

from __future__ import annotations

import os
import signal
import socket
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import pytest

from support.jobs import ANA, EVA, LUIS, accepting, counts, numbers, of_phones, sends, sent_to
from support.kills import in_a_process
from support.machines import Machine, ended, network
from support.postgres import Cluster, running
from support.service import Service, drop, respond
from support.tool import Outcome

SEND = ("sms", "send", ANA, "-m", "Hello", "--once", "disk")
ACCEPTED = respond({"id": "d", "data": [{"id": "m", "status": "queued", "phone": ANA}]})
Start = Callable[..., Machine]


@pytest.fixture
def machine(home: Path, postgres: Cluster, service: Service, monkeypatch: pytest.MonkeyPatch) -> Start:
    """Starts a machine; ``port`` is a port that leads to the database."""
    service.always(accepting(service))
    started: list[Machine] = []

    def start(port: int = 0) -> Machine:
        started.append(Machine(f"machine{len(started)}", home, postgres.url(port=port), monkeypatch))
        return started[-1]

    return start


def state_of_key(postgres: Cluster) -> tuple[str, int | None] | None:
    """Return the state and the exit code of the only key; None if there is no key."""
    return next(iter(postgres.admin("SELECT state, exit_code FROM msgctl.keys")), None)


# --- one key


def test_a_key_sends_once_from_any_machine(machine: Start, service: Service) -> None:
    first, second = machine(), machine()
    sent, again = first(*SEND, "--json"), second(*SEND, "--json")
    assert (sent.code, again.code, again.out) == (0, 0, sent.out)
    assert len(sends(service)) == 1
    assert second("sms", "send", LUIS, "-m", "Hello", "--once", "disk").code == 2


def test_the_outcome_of_a_machine_that_died_is_unknown_on_the_others(machine: Start, service: Service) -> None:
    first, second = machine(), machine()
    service.will(drop, ACCEPTED)
    assert (first(*SEND).code, second(*SEND).code) == (5, 5)
    assert second(*SEND, "--resend-unknown").code == 0
    assert first(*SEND).code == 0
    assert len(sends(service)) == 2


@pytest.mark.slow
def test_one_of_50_processes_on_5_machines_sends(machine: Start, service: Service) -> None:
    """The clock of one machine is an hour fast, and another clock is an hour slow."""
    machines = [machine() for _ in range(5)]
    clocks = [0, 0, 0, 3600, -3600]
    callers = [each.start(*SEND, "--json", clock=clock) for each, clock in [*zip(machines, clocks, strict=True)] * 10]
    done = ended(*callers)
    assert Counter(each.code for each in done) == {0: 50}, [each.err for each in done if each.code]
    assert len({each.out for each in done}) == 1
    assert len(sends(service)) == 1


KEY_FILES = ("once.py", "records.py", "shared.py", "send.py", "store.py", "optouts.py", "database.py", "expiry.py")


@pytest.mark.slow
def test_a_kill_at_any_line_frees_the_key_or_leaves_it_unknown(
    machine: Start, postgres: Cluster, service: Service, home: Path
) -> None:
    first, second = machine(), machine()
    assert first(*SEND).code == 0  # the tables exist
    report, found, number = home / "lines", Counter[str](), 0
    while not report.exists():
        number += 3  # a step of 1 passed, too; it takes two minutes
        service.received.clear()
        key = ("sms", "send", ANA, "-m", "Hello", "--once", f"key {number}")
        first.enter()
        status = in_a_process(partial(_run, first, key), KEY_FILES, number, str(report))
        assert os.WIFSIGNALED(status) or report.exists()
        rows = postgres.admin(f"SELECT state, exit_code FROM msgctl.keys WHERE key = 'key {number}'")
        state = "none" if not rows else "done" if rows[0][1] is not None else rows[0][0]
        before = len(sends(service))
        again = second(*key)
        after = len(sends(service))
        found[state] += 1
        expected = {"none": (0, 0, 1), "claimed": (0, 0, 1), "sending": (before, 5, before), "done": (1, 0, 1)}
        assert (before, again.code, after) == expected[state], (number, state, again.err)
        assert second(*key).code == again.code
    assert min(found[each] for each in ("none", "claimed", "sending", "done")) > 2, found
    assert sum(found.values()) > 50, found


def _run(machine: Machine, line: Sequence[str]) -> None:
    machine(*line)


# --- the connection to the database fails


@pytest.mark.slow
@pytest.mark.parametrize("how", ["lost before", "lost after", "silent before", "silent after"])
def test_a_network_that_fails_at_any_packet(how: str, machine: Start, postgres: Cluster, service: Service) -> None:
    """The reported outcome is right, nothing is sent twice, and msgctl ends within its time limit."""
    direct = machine()
    direct("optout", "add", EVA)
    codes, packet, is_over = Counter[tuple[int, int]](), 0, False
    while not is_over:
        packet += 1 if "lost" in how else 5
        service.received.clear()
        key = ("sms", "send", ANA, "-m", "Hello", "--once", f"key {packet}")
        with network(postgres.port, packet, how) as between:
            done = machine(between.port)(*key, "--timeout", "2")
        is_over = between.packets < packet
        before = len(sends(service))
        assert (done.code, before) in ((0, 1), (4, 0)), (packet, done.err)
        if done.code:
            assert "The shared store 127.0.0.1" in done.err
            assert "nothing was sent" in done.err
        again = direct(*key)
        codes[done.code, again.code] += 1
        assert (again.code, len(sends(service))) in ((0, 1), (5, before)), (packet, again.err)
        if done.code == 0 and again.code == 5:
            assert "Warning: The result is not stored under --once: The shared store" in done.err
    # Everything happened: sent later, in doubt (claimed as sending), sent and unknown, sent and stored.
    assert codes[4, 0] > 1, codes
    assert codes[0, 0] > 0, codes
    if how == "lost after":
        assert codes[4, 5] > 0, codes


@pytest.mark.slow
def test_a_database_that_is_killed_and_started_again(machine: Start, service: Service) -> None:
    """Kill it at any packet of a send. Everything that the database has confirmed must still be there."""
    codes = Counter[tuple[int, int]]()
    with running("fsync=on") as cluster:
        direct = machine()
        direct.url = cluster.url()
        assert direct(*SEND).code == 0
        packet, is_over = 0, False
        while not is_over:
            packet += 3
            service.received.clear()
            key = ("sms", "send", ANA, "-m", "Hello", "--once", f"key {packet}")
            with network(cluster.port, packet, event=cluster.kill if packet % 2 else cluster.stop) as between:
                other = machine()
                other.url = cluster.url(port=between.port)
                done = other(*key, "--timeout", "5")
            is_over = between.packets < packet
            if not is_over:
                cluster.start()
            before = len(sends(service))
            assert (done.code, before) in ((0, 1), (4, 0)), (packet, done.err)
            again = direct(*key)
            codes[done.code, again.code] += 1
            assert (again.code, len(sends(service))) in ((0, 1), (5, before)), (packet, again.err)
    assert codes[4, 0] > 1, codes
    assert codes[0, 0] > 0, codes


def test_the_database_is_lost_after_a_send(machine: Start, postgres: Cluster, service: Service) -> None:
    first, second = machine(), machine()

    def lose(connection: socket.socket) -> None:
        end_sessions(postgres)
        ACCEPTED(connection)

    service.will(lose)
    done = first(*SEND)
    assert (done.code, ANA in done.out) == (0, True), done.err
    assert "Warning: The result is not stored under --once: The shared store 127.0.0.1" in done.err
    assert "nothing was sent" not in done.err
    assert (first(*SEND).code, second(*SEND).code) == (5, 5)
    assert len(sends(service)) == 1


def end_sessions(postgres: Cluster) -> None:
    """End the sessions of msgctl, as a restart of the database does."""
    postgres.admin("SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE usename = 'app'")


# --- opt-outs


def test_an_opt_out_applies_to_running_jobs_of_other_machines(machine: Start, service: Service, everyone: str) -> None:
    first, second = machine(), machine()

    def opt_out() -> None:
        if len(sends(service)) == 1:
            (done,) = ended(second.start("optout", "add", EVA))
            assert done.code == 0, done.err

    service.always(accepting(service, look=opt_out))
    done = first.enter().sms(everyone, "--batch-size", "1", "--yes", "--json")
    assert (done.code, counts(done.document)) == (0, {"accepted": 2, "excluded": 1}), done.err
    second("sms", "send", EVA, "-m", "Hello").refused(2, "opted out")
    assert second("optout", "list", "-o", "csv", "--no-header", "--fields", "phone").out == f"{EVA}\n"
    assert first("optout", "remove", EVA).code == 0
    assert second("sms", "send", EVA, "-m", "Hello").code == 0


# --- jobs

BULK = ("--once", "november", "--batch-size", "1")


def test_a_job_is_created_once_from_any_machine(machine: Start, service: Service, everyone: str) -> None:
    first, second = machine(), machine()
    job = first.enter().send(everyone, *BULK)
    again = second.enter().sms(everyone, "--yes", "--json", *BULK)
    assert (again.code, again.document) == (0, first.enter().shown(job))
    assert f"created job {job} on machine0 before" in second.enter().sms(everyone, "--yes", *BULK).err
    assert sent_to(service) == [ANA, LUIS, EVA]


def test_a_job_that_is_running_elsewhere(machine: Start, service: Service, everyone: str) -> None:
    first, second = machine(), machine()
    found: list[Outcome] = []

    def look() -> None:
        if not found:
            found.extend(ended(second.start("sms", "bulk", everyone, "-m", "Hello", "--yes", "--json", *BULK)))

    service.always(accepting(service, look=look))
    first.enter().send(everyone, *BULK)
    assert (found[0].code, found[0].error["reason"]) == (6, "running_elsewhere"), found[0].err
    assert "on machine0 is running" in found[0].error["message"]
    job = first("job", "show", "--last", "--json").document["job"]
    assert found[0].error["hint"] == f"Check it there: msgctl job show {job}"
    assert sent_to(service) == [ANA, LUIS, EVA]


def test_two_jobs_with_one_key_at_the_same_moment(machine: Start, service: Service, home: Path) -> None:
    file = of_phones(home, numbers(20))
    line = ("sms", "bulk", file, "-m", "Hello", "--yes", "--json", *BULK)
    done = ended(*(machine().start(*line) for _ in range(4)))
    assert {each.code for each in done} <= {0, 6}, done
    assert {each.error["reason"] for each in done if each.code} <= {"running_elsewhere"}
    assert 0 in {each.code for each in done}
    assert len({each.document["job"] for each in done if each.code == 0}) == 1
    assert sent_to(service) == sorted(numbers(20))


def test_a_paused_job_is_explained_and_can_be_resumed_only_there(
    machine: Start, service: Service, everyone: str
) -> None:
    first, second = machine(), machine()
    job = first.enter().send(everyone, "--canary", "1", *BULK)
    again = second.enter().sms(everyone, "--yes", "--canary", "1", *BULK)
    assert (again.code, f"Job {job} on machine0 is paused. It can be sent and resumed only there." in again.err) == (
        0,
        True,
    ), again.err
    assert first("job", "resume", job, "--yes").code == 0
    again = second.enter().sms(everyone, "--yes", "--json", "--canary", "1", *BULK)
    assert (again.code, counts(again.document)) == (0, {"accepted": 3})
    assert sent_to(service) == [ANA, LUIS, EVA]


def test_a_job_whose_process_was_killed_is_unknown_elsewhere(machine: Start, service: Service, everyone: str) -> None:
    first, second = machine(), machine()

    def kill() -> None:
        if len(sends(service)) == 2:
            started[0].kill()

    service.always(accepting(service, look=kill))
    started = [first.start("sms", "bulk", everyone, "-m", "Hello", "--yes", "--concurrency", "1", *BULK)]
    assert started[0].wait(60) == -signal.SIGKILL
    started[0].communicate()
    again = second.enter().sms(everyone, "--yes", *BULK)
    assert (again.code, "stopped before it was complete" in again.err) == (5, True), again.err
    service.always(accepting(service))
    done = first("job", "resume", "--last", "--json")
    assert f"Resume it there: msgctl job resume {done.document['job']}" in again.err
    assert (done.code, counts(done.document)) == (6, {"accepted": 2, "unknown": 1}), done.err
    again = second.enter().sms(everyone, "--yes", "--json", *BULK)
    assert (again.code, counts(again.document)) == (6, {"accepted": 2, "unknown": 1}), again.err
    assert sent_to(service) == [ANA, LUIS, EVA]


def test_a_job_pauses_if_the_database_is_lost_and_can_be_resumed(
    machine: Start, postgres: Cluster, service: Service, home: Path
) -> None:
    first, second = machine(), machine()
    people = numbers(20)

    def lose() -> None:
        if len(sends(service)) == 3:
            end_sessions(postgres)

    service.always(accepting(service, look=lose))
    done = first.enter().sms(of_phones(home, people), "--yes", "--json", *BULK)
    assert (done.code, done.document["state"], done.error["reason"]) == (4, "paused", "not_reached"), done.err
    assert "The shared store 127.0.0.1" in done.error["message"]
    assert "nothing was sent" not in done.error["message"]
    assert "input failed" not in done.error["message"]
    service.always(accepting(service))
    done = first("job", "resume", "--last", "--json")
    assert (done.code, counts(done.document)) == (0, {"accepted": 20}), done.err
    assert Counter(sent_to(service)) == dict.fromkeys(people, 1)
    again = second.enter().sms(of_phones(home, people), "--yes", "--json", *BULK)
    assert (again.code, counts(again.document)) == (0, {"accepted": 20})


@pytest.mark.slow
@pytest.mark.parametrize("how", ["lost before", "lost after", "silent before"])
def test_a_network_that_fails_at_any_packet_of_a_job(
    how: str, machine: Start, postgres: Cluster, service: Service, home: Path
) -> None:
    """The job is resumed when the network works again."""
    people = numbers(4)
    file, codes, packet, is_over = of_phones(home, people), Counter[tuple[int, int]](), 0, False
    other = machine()
    assert other.enter().sms(file, "--yes", *BULK).code == 0  # the tables exist
    while not is_over:
        packet += 5 if "lost" in how else 17  # every packet was tried, too
        service.received.clear()
        line = ["sms", "bulk", file, "-m", f"Hello {packet}", "--yes", "--batch-size", "1", "--timeout", "2"]
        line += ["--once", f"key {packet}"]
        first = machine()
        with network(postgres.port, packet, how) as between:
            first.url = postgres.url(port=between.port)
            done = first(*line)
        is_over = between.packets < packet
        first.url = postgres.url()
        before = sent_to(service)
        assert done.code in (0, 4), (packet, done.err)
        assert done.code == 4 or before == people, (packet, done.err)
        assert not before or "nothing was sent" not in done.err, (packet, done.err)
        if first("job", "list", "-o", "csv", "--no-header").out:
            resumed = first("job", "resume", "--last")
            assert resumed.code in ((0,) if done.code else (0, 2)), (packet, resumed.err)
        else:
            assert (done.code, before) == (4, [])
            assert first(*line).code in (0, 2, 5), packet
        again = other(*line)
        codes[done.code, again.code] += 1
        assert Counter(sent_to(service)) <= Counter(people), (packet, done.err, again.err)
        assert again.code in (0, 5) or (again.code, before) == (2, []), (packet, again.err)
        assert again.code != 0 or sent_to(service) == people, (packet, again.err)
    assert codes[4, 0] > 1, codes


JOB_FILES = ("bulk.py", "foreground.py", "once.py", "contacts.py", "shared.py", "importer.py", "runner.py", "ledger.py")


@pytest.mark.slow
@pytest.mark.parametrize("key", [True, False], ids=["with a key", "without a key"])
def test_a_kill_of_a_job_at_any_line(
    key: bool, machine: Start, postgres: Cluster, service: Service, home: Path
) -> None:
    """Another machine starts the same job, and then the first one resumes its own: no one gets the message twice."""
    people = numbers(4)
    file, report, number, found = of_phones(home, people), home / "lines", 0, Counter[tuple[int, bool]]()
    first, second = machine(), machine()
    while not report.exists():
        number += 29  # steps of 13 and 17 passed, too
        service.received.clear()
        line = ["sms", "bulk", file, "-m", f"Hello {number}", "--yes", "--batch-size", "1", "--concurrency", "2"]
        line += ["--once", f"key {number}"] if key else []
        first.enter()
        status = in_a_process(partial(_run, first, line), JOB_FILES, number, str(report))
        assert os.WIFSIGNALED(status) or report.exists()
        again = second(*line)
        job = first("job", "resume", "--last")
        is_resumed = job.code in (0, 6) and "is done" not in job.err
        found[again.code, is_resumed] += 1
        got = Counter(sent_to(service))
        unknown = first("job", "report", "--last", "--only", "unknown", "--json").document if is_resumed else []
        assert max(got.values(), default=1) == 1, (number, again.err, job.err)
        if again.code == 0 and not key:
            assert set(got) == set(people), (number, again.err, job.err)
        assert second(*line).code in (0, 2, 5, 6)
        if is_resumed:
            assert {*got, *(each["phone"] for each in unknown)} == set(people), (number, again.err, job.err)
        first("job", "remove", "--before", "2027-01-01", "--yes")
    expected = {(0, False), (0, True), (5, True)} if key else {(0, False), (2, True)}
    assert expected <= found.keys(), found


# --- repeats


def test_the_same_message_from_another_machine_is_a_repeat(machine: Start, service: Service, everyone: str) -> None:
    first, second = machine(), machine()
    job = first.enter().send(everyone, "--canary", "1")
    again = second.enter().sms(everyone, "--yes")
    assert (again.code, f"Job {job} on machine0" in again.err) == (2, True), again.err
    second.enter().send(everyone, text="Another message")
    assert sent_to(service) == sorted([ANA, ANA, LUIS, EVA])
    assert first("job", "remove", job, "--yes").code == 0
    done = second.enter().sms(everyone, "--yes", "--json")
    assert done.code == 0, "the plan of the deleted job no longer counts"


def test_one_of_two_jobs_at_the_same_moment_is_a_repeat(machine: Start, service: Service, home: Path) -> None:
    file = of_phones(home, numbers(20))
    line = ("sms", "bulk", file, "-m", "Hello", "--yes", "--json")
    done = ended(*(machine().start(*line) for _ in range(3)))
    assert sorted(each.code for each in done) == [0, 2, 2], [each.err for each in done]
    assert sent_to(service) == sorted(numbers(20))


def test_a_limit_counts_the_messages_of_all_machines(machine: Start, service: Service, everyone: str) -> None:
    first, second = machine(), machine()
    assert first("sms", "send", ANA, "-m", "One").code == 0
    service.received.clear()
    done = second.enter().sms(everyone, "--at-most", "1/day", "--yes", "--json")
    assert (done.code, counts(done.document)) == (0, {"accepted": 2, "excluded": 1}), done.err
    assert sent_to(service) == [LUIS, EVA]
