"""`msgctl job resend`: everyone is sent to once, whatever runs twice, at once, or is killed."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from support.jobs import ANA, EVA, LUIS, REFUSAL, Jobs, accepting, counts, files, folder, of_phones, sent_to, table
from support.service import Service, drop, respond
from support.tool import Tool, process

EVERYONE = sorted([ANA, LUIS, EVA])
RESEND = ("--only", "refused", "--yes")


@pytest.fixture
def job(jobs: Jobs, service: Service, home: Path) -> str:
    """A job of three, whom the service refused. From now on it accepts, and forgets what it received before."""
    service.will(respond({"status": 1000}), REFUSAL)
    job = jobs.send(of_phones(home, EVERYONE), code=6)
    service.received.clear()
    service.always(accepting(service))
    return job


def resent(jobs: Jobs, job: str, *more: str, code: int = 0) -> str:
    """Resend to the refused recipients of a job; the id of the new one."""
    done = jobs("job", "resend", job, *RESEND, *more, "--json")
    assert done.code == code, done.err
    return str(done.document["job"])


def refusing(service: Service, send: Callable[[], str]) -> str:
    """Send while the service refuses everything; it forgets what it received."""
    service.always(REFUSAL)
    job = send()
    service.received.clear()
    service.always(accepting(service))
    return job


def test_each_new_job_has_its_own_name(jobs: Jobs, service: Service, home: Path) -> None:
    service.will(respond({"status": 1000}), REFUSAL)
    job = jobs.send(of_phones(home, EVERYONE), "--name", "orders", code=6)
    names = [jobs.shown(refusing(service, lambda: resent(jobs, job, code=6)))["name"] for _ in range(2)]
    assert (names, jobs.shown(job)["name"]) == (["orders-2", "orders-3"], "orders")


def test_a_resend_keeps_the_messages_segments_and_columns(jobs: Jobs, service: Service, home: Path) -> None:
    service.will(respond({"status": 1000}), REFUSAL, REFUSAL)
    file = table(home, "phone,text,city", f"{ANA},Hola,", f"{LUIS},{'x' * 161},Cali", f"{EVA},Hola,Quito")
    job = jobs.send(file, text="{text}", code=6)
    service.always(accepting(service))
    plan = jobs("job", "resend", job, *RESEND, "--dry-run", "--json").document
    assert (plan["messages"], plan["segments"], plan["credits"]) == (3, 4, 4)
    new = jobs.report(resent(jobs, job))
    assert [(row["phone"], row["text"], row["city"]) for row in new] == [
        (ANA, "Hola", ""),
        (LUIS, "x" * 161, "Cali"),
        (EVA, "Hola", "Quito"),
    ]


def test_recipients_refused_after_a_resend_are_in_the_next_resend(jobs: Jobs, service: Service, home: Path) -> None:
    service.will(respond({"status": 1000}), REFUSAL)
    service.always(accepting(service))
    job = jobs.send(of_phones(home, EVERYONE), "--canary", "1", code=6)
    resent(jobs, job)
    service.will(REFUSAL)
    assert jobs("job", "resume", job, "--yes").code == 6
    service.received.clear()
    resent(jobs, job)
    assert sent_to(service) == EVERYONE[1:]


# --- twice, in any order


def test_a_second_resend_leaves_out_the_recipients_of_the_first(job: str, jobs: Jobs, service: Service) -> None:
    first = resent(jobs, job)
    again = jobs("job", "resend", job, *RESEND)
    assert (again.code, again.out) == (0, "")
    assert f"Left out 3 recipients to whom job {first} has sent or will send" in again.err
    assert f"Job {job} has no other refused recipients; nothing was sent" in again.err
    assert sent_to(service) == EVERYONE


def test_resends_at_once_send_to_everyone_once(job: str, service: Service) -> None:
    line = [sys.executable, "-m", "msgctl", "job", "resend", job, *RESEND]
    started = [subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(3)]
    for each in started:
        each.communicate(timeout=60)
    assert {each.returncode for each in started} <= {0, 2}
    assert 0 in [each.returncode for each in started]
    assert sent_to(service) == EVERYONE


@pytest.mark.every_set
def test_undelivered_messages_are_resent_once(jobs: Jobs, service: Service, home: Path) -> None:
    service.always(accepting(service))
    job = jobs.send(of_phones(home, EVERYONE))
    service.received.clear()
    service.always(respond({"state": "rejected"}))
    assert jobs("job", "states", job).code == 0
    service.always(accepting(service))
    for _ in range(2):
        assert jobs("job", "resend", job, "--yes").code == 0
    assert sent_to(service) == EVERYONE


def test_resend_and_resume_leave_out_each_others_recipients(job: str, jobs: Jobs, service: Service) -> None:
    new = resent(jobs, job)
    done = jobs("job", "resume", job, "--resend-refused", "--yes")
    assert f"Left out 3 recipients to whom job {new} has sent or will send" in done.err
    assert jobs("job", "resume", job, "--resend-refused", "--resend-unknown", "--yes").code == 6
    assert sent_to(service) == EVERYONE


def test_resume_before_resend(job: str, jobs: Jobs, service: Service) -> None:
    assert jobs("job", "resume", job, "--resend-refused", "--yes").code == 0
    assert "no refused recipients" in jobs("job", "resend", job, *RESEND).err
    assert sent_to(service) == EVERYONE


@pytest.mark.parametrize("other", ["resend", "resume"])
def test_a_resend_that_another_command_started_during_the_question_is_not_repeated(
    other: str, job: str, jobs: Jobs, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    def meanwhile(*_: object) -> None:
        more = RESEND if other == "resend" else ("--resend-refused", "--yes")
        assert process("job", other, job, *more).code == 0

    with monkeypatch.context() as patch:
        patch.setattr("msgctl.cli.prompts.confirm", meanwhile)
        done = jobs("job", "resend", job, "--only", "refused")
    done.refused(2, f"Another command has just begun to resend to recipients of job {job}", "nothing was sent")
    assert sent_to(service) == EVERYONE


def test_a_resend_during_the_question_of_resume(
    job: str, jobs: Jobs, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    def meanwhile(*_: object) -> None:
        assert process("job", "resend", job, *RESEND).code == 0

    with monkeypatch.context() as patch:
        patch.setattr("msgctl.cli.prompts.confirm", meanwhile)
        assert jobs("job", "resume", job, "--resend-refused").code == 6
    assert sent_to(service) == EVERYONE


# --- resends that were refused, stopped, deleted, or never began


@pytest.mark.every_set
@pytest.mark.parametrize("again", ["resend the first", "resend the second", "resume the first", "resume the second"])
def test_recipients_that_a_resend_refused_too_can_be_resent_to_once(
    again: str, job: str, jobs: Jobs, service: Service
) -> None:
    second = refusing(service, lambda: resent(jobs, job, code=6))
    lines = [
        ("job", command, which, *more)
        for command, more in (("resend", RESEND), ("resume", ("--resend-refused", "--yes")))
        for which in (job, second)
    ]
    first = ["resend the first", "resend the second", "resume the first", "resume the second"].index(again)
    assert jobs(*lines[first]).code == 0
    for line in lines:
        jobs(*line)
    assert sent_to(service) == EVERYONE


def test_a_chain_of_resends(job: str, jobs: Jobs, service: Service) -> None:
    second = refusing(service, lambda: resent(jobs, job, code=6))
    third = refusing(service, lambda: resent(jobs, second, code=6))
    assert jobs("job", "resume", job, "--resend-refused", "--yes").code == 0
    for each in (third, second, job):
        jobs("job", "resume", each, "--resend-refused", "--yes")
        jobs("job", "resend", each, *RESEND)
    assert sent_to(service) == EVERYONE


@pytest.mark.every_set
def test_a_resend_with_unknown_outcomes_counts_as_sent(job: str, jobs: Jobs, service: Service) -> None:
    service.will(respond({"status": 1000}), drop)
    resent(jobs, job, code=6)
    jobs("job", "resend", job, *RESEND)
    jobs("job", "resume", job, "--resend-refused", "--yes")
    assert sent_to(service) == EVERYONE


def test_a_resend_that_was_not_confirmed_leaves_no_trace(job: str, jobs: Jobs, service: Service, home: Path) -> None:
    def stored() -> dict[str, bytes]:
        """Return what is in the folder, but for the empty files that SQLite makes to read a ledger."""
        left = (name for name in files(home) if not name.endswith("-shm"))
        return {name: content for name in left if (content := (folder(home) / name).read_bytes())}

    before = stored()
    assert jobs("job", "resend", job, "--only", "refused", "--dry-run").code == 0
    jobs("job", "resend", job, "--only", "refused").refused(2, "--yes")
    assert jobs("job", "resend", job, "--only", "refused", terminal=True, stdin="n\n").code == 130
    assert stored() == before
    resent(jobs, job)
    assert sent_to(service) == EVERYONE


def paused(jobs: Jobs, job: str, home: Path) -> str:
    """A resend that was killed before its first request."""
    script = (
        "import os, signal, sys\n"
        "from msgctl.__main__ import main\n"
        "from msgctl.jobs.runner import Runner\n"
        "Runner._commit = lambda *_: os.kill(os.getpid(), signal.SIGKILL)\n"
        f"sys.argv = ['msgctl', 'job', 'resend', {job!r}, '--only', 'refused', '--yes']\n"
        "main()\n"
    )
    before = {*files(home)}
    assert subprocess.run([sys.executable, "-c", script], check=False, timeout=60).returncode == -9
    (new,) = (name for name in {*files(home)} - before if name.endswith(".sqlite3"))
    return new.removesuffix(".sqlite3")


def test_recipients_of_a_deleted_resend_that_got_nothing_can_be_resent_to(
    job: str, jobs: Jobs, service: Service, home: Path
) -> None:
    new = paused(jobs, job, home)
    jobs("job", "resend", job, *RESEND)
    assert sent_to(service) == []
    assert counts(jobs.shown(new)) == {"pending": 3}
    assert jobs("job", "resume", new, "--max-credits", "1").code == 6
    assert len(sent_to(service)) == 1
    assert jobs("job", "remove", new, "--yes").code == 0
    again = resent(jobs, job)
    assert counts(jobs.shown(again)) == {"accepted": 2}
    assert sent_to(service) == EVERYONE


def test_recipients_of_a_deleted_resend_that_got_the_message_are_left_out(
    job: str, jobs: Jobs, service: Service, tool: Tool, home: Path
) -> None:
    new = resent(jobs, job)
    assert jobs("job", "remove", new, "--yes").code == 0
    again = jobs("job", "resend", job, *RESEND)
    assert f"Left out 3 recipients to whom job {new} has sent" in again.err
    jobs("job", "resume", job, "--resend-refused", "--yes")
    assert sent_to(service) == EVERYONE


def test_recipients_in_a_ledger_that_was_moved_count_as_sent(
    job: str, jobs: Jobs, service: Service, home: Path
) -> None:
    new = resent(jobs, job)
    ledger = folder(home) / f"{new}.sqlite3"
    ledger.write_bytes(b"not a ledger" * 1000)
    jobs("job", "resend", job, *RESEND).refused(3, ledger.name)
    jobs("job", "resume", job, "--resend-refused", "--yes").refused(3, ledger.name)
    ledger.rename(home / "moved")
    jobs("job", "resend", job, *RESEND)
    jobs("job", "resume", job, "--resend-refused", "--yes")
    assert sent_to(service) == EVERYONE


def test_a_resend_continues_if_its_source_was_deleted(job: str, jobs: Jobs, service: Service, home: Path) -> None:
    new = paused(jobs, job, home)
    assert jobs("job", "remove", job, "--yes").code == 0
    assert jobs("job", "resume", new).code == 0
    assert sent_to(service) == EVERYONE


KILLED = """
import os, signal, sys
from msgctl.__main__ import main
from msgctl.cli import bulk
from msgctl.jobs import importer, resends

def killed_at(module, name, after):
    function = getattr(module, name)
    def instead(*arguments, **named):
        if after:
            function(*arguments, **named)
        os.kill(os.getpid(), signal.SIGKILL)
    setattr(module, name, instead)

killed_at({module}, {name!r}, {after})
sys.argv = ['msgctl', 'job', *{line!r}]
main()
"""


@pytest.mark.slow
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize(
    ("line", "module", "name"),
    [
        ("resend", "resends", "take_back"),
        ("resend", "resends", "hand_over"),
        ("resend", "importer.Importer", "finish"),
        ("resend", "bulk.foreground", "delete_old"),
        ("resend", "resends", "begin"),
        ("resume", "resends", "take_back"),
        ("resume", "bulk.foreground", "delete_old"),
        ("resume", "resends", "begin"),
    ],
)
def test_a_resend_killed_at_any_step_sends_to_everyone_once(
    module: str, name: str, after: bool, line: str, job: str, jobs: Jobs, service: Service, home: Path
) -> None:
    """Afterwards everyone gets one message, although every command that could resend it runs."""
    second = refusing(service, lambda: resent(jobs, job, code=6))
    words = ["resend", job, *RESEND] if line == "resend" else ["resume", job, "--resend-refused", "--yes"]
    script = KILLED.format(module=module, name=name, after=after, line=words)
    done = subprocess.run([sys.executable, "-c", script], check=False, timeout=60, capture_output=True)
    assert done.returncode == -9, done.stderr
    for which in (second, job, second):
        jobs("job", "resume", which, "--resend-refused", "--yes")
        jobs("job", "resend", which, *RESEND)
    for each in jobs("job", "list", "--json").document:
        jobs("job", "resume", each["job"], "--resend-refused", "--yes")
    assert sent_to(service) == EVERYONE
