"""Keys of --once: what is stored, and a process that is killed at every line."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from msgctl import operations as ops
from msgctl.errors import ConfigurationError, UsageError
from msgctl.history import once
from msgctl.history.once import StoredResult, fingerprint, reserved
from msgctl.http.request import build
from msgctl.storage import files
from msgctl.storage.records import LOCAL, Records
from msgctl.storage.shared import SharedRecords
from support.postgres import Cluster

NOW = 1_790_000_000.0
ACCOUNT, KEY, WANTED = "https://service.example/api/v1 1", "disk-2026-11-21", "f" * 64
EXTRA = 3
"""SQLite's number for a commit that stays even if its rollback journal comes back."""
ACCEPTED = StoredResult(0, 200, b'{"id": "m1"}')


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "msgctl" / "once.sqlite3"


def send(
    path: Path, result: StoredResult | None = ACCEPTED, *, records: Records = LOCAL, **changed: Any
) -> StoredResult | None:
    """Send once, and return the earlier result; a ``result`` of None is a request that was refused."""
    options = {"account": ACCOUNT, "key": KEY, "wanted": WANTED, "now": NOW, **changed}
    with reserved(records, **options) as reservation:
        if records is LOCAL:
            assert reservation._db.execute("PRAGMA synchronous").fetchone() == (EXTRA,), "a power cut would lose it"
        if reservation.earlier is None:
            reservation.begin()
            path.parent.mkdir(parents=True, exist_ok=True)
            with (path.parent / "sent").open("a") as sent:
                sent.write("x")
            if result is None:
                reservation.release()
            else:
                reservation.settle(result)
        return reservation.earlier


def sent(path: Path) -> int:
    """Return how many requests were sent."""
    counter = path.parent / "sent"
    return len(counter.read_text()) if counter.exists() else 0


def test_a_result_that_was_not_stored_is_unknown(path: Path, records: Records) -> None:
    with reserved(records, ACCOUNT, KEY, WANTED, now=NOW) as reservation:
        reservation.begin()
    assert send(path, records=records) == once.DIED
    assert sent(path) == 0


def test_a_key_is_free_if_no_request_followed_its_reservation(path: Path, records: Records) -> None:
    with reserved(records, ACCOUNT, KEY, WANTED, now=NOW) as reservation:
        assert reservation.earlier is None
    assert send(path, records=records, wanted="e" * 64) is None
    assert send(path, records=records, wanted="e" * 64) == ACCEPTED


def test_the_files_are_private_and_no_lock_stays_behind(path: Path) -> None:
    with reserved(LOCAL, ACCOUNT, KEY, WANTED, now=NOW) as reservation:
        (lock,) = path.parent.glob(".once-*.lock")
        assert lock.stat().st_mode & 0o777 == 0o600
        reservation.release()
    send(path)
    assert {each.name for each in path.parent.iterdir()} == {"once.sqlite3", "sent"}
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700


def test_one_of_two_processes_that_share_a_session_sends(postgres: Cluster) -> None:
    """A pooler may give the session of one client to another client, so both get the lock."""
    with closing(SharedRecords(postgres.url(), 30)) as one, closing(SharedRecords(postgres.url(), 30)) as other:
        with one.opened(once.KEYS):
            pass
        other._own = one._own
        with (
            reserved(one, ACCOUNT, KEY, WANTED, now=NOW) as first,
            reserved(other, ACCOUNT, KEY, WANTED, now=NOW) as second,
        ):
            first.begin()
            with pytest.raises(ConfigurationError) as caught:
                second.begin()
            second.release()
            first.settle(ACCEPTED)
        with reserved(one, ACCOUNT, KEY, WANTED, now=NOW) as again:
            assert again.earlier == ACCEPTED
    assert caught.value.message == f'Another process took over the key "{KEY}"; nothing was sent'
    assert caught.value.hint == "Connect to PostgreSQL directly, or through a pooler that keeps sessions."


def test_a_job_that_is_being_created_is_not_yet_a_result(postgres: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise a waiting process finds no ledger and takes the key."""
    created = StoredResult(0, body=b"20261123-aaaaaa")
    with (
        closing(SharedRecords(postgres.url(), 30)) as one,
        closing(SharedRecords(postgres.url(), 30)) as other,
        reserved(one, ACCOUNT, KEY, WANTED, now=NOW) as first,
    ):
        first.settle(replace(created, what=once.BEING_CREATED))
        monkeypatch.setattr("msgctl.storage.shared.time.sleep", lambda _: first.settle(created))
        with reserved(other, ACCOUNT, KEY, WANTED, now=NOW) as second:
            assert (second.earlier, second.is_held) == (created, False)


def test_other_machines_can_read_the_owner_and_the_summary_of_a_job(postgres: Cluster) -> None:
    with closing(SharedRecords(postgres.url(), 30)) as one, closing(SharedRecords(postgres.url(), 30)) as other:
        one.owner = "machine1"
        for is_finished in (False, True):
            with reserved(one, ACCOUNT, KEY, WANTED, now=NOW) as reservation:
                if reservation.earlier is None:
                    reservation.begin()
                    reservation.settle(StoredResult(0, body=b"20261123-aaaaaa"))
            if is_finished:
                with once.running(one, ACCOUNT, "20261123-aaaaaa") as finish:
                    finish(StoredResult(6, what="It stopped"), '{"state": "paused"}')
            with reserved(other, ACCOUNT, KEY, WANTED, now=NOW) as found:
                assert (found.owner, found.summary) == ("machine1", b'{"state": "paused"}' if is_finished else None)
        assert found.earlier == StoredResult(6, body=b"20261123-aaaaaa", what="It stopped")


def test_an_unknown_outcome_is_kept_if_its_resend_is_refused(path: Path, records: Records) -> None:
    unknown = StoredResult(5, 504, b"half", "The response was cut off", "Look it up.")
    assert send(path, unknown, records=records) is None
    assert send(path, None, records=records, resend_unknown=True) is None
    assert send(path, records=records) == unknown
    assert send(path, ACCEPTED, records=records, resend_unknown=True) is None
    assert send(path, records=records, resend_unknown=True) == ACCEPTED
    assert sent(path) == 3


def test_a_key_is_for_one_message(path: Path, records: Records) -> None:
    send(path, records=records)
    assert send(path, records=records, account="another") is None
    assert send(path, records=records, key="another") is None
    assert send(path, records=records) == ACCEPTED
    with pytest.raises(UsageError) as caught:
        send(path, records=records, wanted="e" * 64)
    assert caught.value.message == f'--once "{KEY}" was used for another message or other recipients'
    assert caught.value.hint == "Choose another key for this message."


def test_a_key_has_at_most_200_characters() -> None:
    assert [once.check_key(key) for key in ("k" * 200, "a key \ud800")] == ["k" * 200, r"a key \ud800"]
    for key, shown in (("", ""), (" \t", " \\t"), ("k" * 201, f"{'k' * 59}…")):
        with pytest.raises(UsageError) as caught:
            once.check_key(key)
        assert caught.value.message == f'--once needs a key of 1 to 200 characters, not "{shown}"'
        assert caught.value.hint == 'Choose one for each message, for example --once "disk-$(date +%F)"'


def test_nothing_may_be_sent_if_the_file_cannot_be_used(path: Path) -> None:
    send(path)
    path.write_bytes(b"no database" * 100)
    with pytest.raises(ConfigurationError):
        send(path)
    assert sent(path) == 1


def test_the_order_of_recipients_does_not_make_another_message() -> None:
    first = fingerprint(build(ops.SEND_SMS, {"phone": ["573001234567", "573001234568"], "sms": "Hola"}))
    assert fingerprint(build(ops.SEND_SMS, {"sms": "Hola", "phone": ("573001234568", "573001234567")})) == first
    others = [
        fingerprint(build(ops.SEND_SMS, {"phone": ["573001234567"], "sms": "Hola"})),
        fingerprint(build(ops.SEND_SMS, {"phone": ["573001234567", "573001234568"], "sms": "hola"})),
        fingerprint(build(ops.SEND_CALL, {"phone": ["573001234567", "573001234568"], "message": "Hola"})),
        fingerprint(build(ops.CHATAPP_SEND, {"template": "t"}, b"{}")),
        fingerprint(build(ops.CHATAPP_SEND, {"template": "t"}, b"[]")),
    ]
    assert len({first, *others}) == 6


def test_a_newer_msgctl_knows_the_messages_of_an_older_one() -> None:
    """Keys are kept for 90 days: a digest that changed would refuse to try a message of yesterday again."""
    sms = fingerprint(build(ops.SEND_SMS, {"phone": ["573001234568", "573001234567"], "sms": "Año nuevo"}))
    assert sms[:16] == "83c08bf8a2de8376"
    chat = fingerprint(build(ops.CHATAPP_SEND, {"template": "hello"}, b'{"phone": "573001234567"}'))
    assert chat[:16] == "442996cd9256bf39"


DAY = 86400


def test_a_key_is_deleted_after_90_days_of_use(path: Path, records: Records) -> None:
    send(path, records=records)
    for day in range(1, 91):
        send(path, key=f"of day {day}", now=NOW + day * DAY, records=records)
    assert send(path, now=NOW + 90 * DAY, records=records) == ACCEPTED
    assert send(path, now=NOW + 91 * DAY, records=records) is None


def test_a_wrong_clock_deletes_no_keys(path: Path, records: Records) -> None:
    for day in range(-200, 0):
        send(path, key=f"of day {day}", now=NOW + day * DAY, records=records)
    before = sent(path)
    wrong = [NOW, NOW + 9000 * DAY, NOW + 9001 * DAY, 0.0, DAY, NOW]
    for number, now in enumerate(wrong):
        send(path, key=f"with a wrong clock {number}", now=now, records=records)
    for number in range(len(wrong)):
        assert send(path, key=f"with a wrong clock {number}", records=records) == ACCEPTED
    assert send(path, key="of day -80", records=records) == ACCEPTED
    assert sent(path) == before + len(wrong)


# --- processes


@pytest.mark.slow
def test_a_kill_at_any_line_never_leads_to_a_second_request(path: Path) -> None:
    command = [sys.executable, "-m", "history.test_once", str(path)]
    done = subprocess.run(command, cwd=Path(__file__).parents[1], stdout=subprocess.PIPE, timeout=300, check=True)
    runs = json.loads(done.stdout)
    outcomes = {(killed["sent"], killed["then_sent"], killed["stored"]) for killed in runs}
    # Killed before `begin`: the next process sends. After it: unknown. After storing: the result.
    assert {(0, 1, "None"), (0, 0, "unknown"), (1, 0, "unknown"), (1, 0, "accepted")} == outcomes
    assert len(runs) > 30


def _kill_at_every_line(path: Path) -> list[dict[str, Any]]:
    """Kill a process at its first, second, third… line, and send again after each."""
    runs: list[dict[str, Any]] = []
    names = {None: "None", once.DIED: "unknown", ACCEPTED: "accepted"}
    while not runs or runs[-1]["killed"]:
        os.environ["XDG_STATE_HOME"] = str(path.parents[1] / f"{len(runs)}")
        database = files.state(path.name)
        status = _in_a_process(database, kill_at=len(runs) + 1)
        before = sent(database)
        stored = send(database)
        runs.append(
            {
                "killed": os.WIFSIGNALED(status),
                "sent": before,
                "then_sent": sent(database) - before,
                "stored": names[stored],
            }
        )
        assert send(database) == (stored or ACCEPTED)
    return runs


def _in_a_process(path: Path, kill_at: int) -> int:
    if child := os.fork():
        return os.waitpid(child, 0)[1]
    lines = 0

    def count(frame: FrameType, event: str, _: object) -> Any:
        nonlocal lines
        if Path(frame.f_code.co_filename).name not in ("once.py", "records.py", "files.py", "test_once.py"):
            return None
        lines += event == "line"
        if lines >= kill_at:
            os.kill(os.getpid(), signal.SIGKILL)
        return count

    sys.settrace(count)
    send(path)
    sys.settrace(None)
    os._exit(0)


if __name__ == "__main__":
    sys.stdout.write(json.dumps(_kill_at_every_line(Path(sys.argv[1]))))
