"""`msgctl job`: list, show, report, resume, states and remove."""

from __future__ import annotations

import csv
import io
import json
import socket
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from python_calamine import CalamineWorkbook

from msgctl.jobs.ledger import facts
from msgctl.jobs.store import Store
from support.disks import mounted
from support.files import table as profile
from support.files import write_config
from support.jobs import (
    ANA,
    BALANCE,
    EVA,
    LUIS,
    REFUSAL,
    SUMMARY_FIELDS,
    Jobs,
    accepting,
    counts,
    files,
    folder,
    numbers,
    of_phones,
    phones,
    sends,
    table,
)
from support.service import Service, drop, respond
from support.tool import Tool

NOWHERE = "20261121-ffffff"
OUTCOMES = ("accepted", "refused", "unknown", "pending", "invalid", "duplicate")


@pytest.fixture
def mixed(jobs: Jobs, service: Service, home: Path) -> str:
    """A job with a recipient of every outcome, to be resumed at the sixth of eleven lines."""
    first, second, third, *rest = numbers(8)
    file = table(home, "phone", first, second, "nobody", third, first, *rest)
    entry = {"id": "m1", "status": "queued", "credits": 2, "phone": first}
    service.will(BALANCE, respond({"data": [entry]}), drop, *[REFUSAL] * 5)
    return jobs.send(file, "--batch-size", "1", "--skip-invalid", code=1)


# --- list and show


def test_an_empty_list_has_a_note(jobs: Jobs, service: Service, tool: Tool, home: Path) -> None:
    assert tool("job", "list", screen=True).err == "No jobs\n"
    service.always(accepting(service))
    job = jobs.send(of_phones(home, [ANA]))
    assert "has nothing pending" in jobs("job", "resume", job).err
    for form, note in ((), f"Job {job} has no refused recipients\n"), (("-q",), ""), (("--json",), ""):
        done = tool("job", "report", job, "--only", "Refused", *form, screen=True)
        assert (done.code, done.err) == (0, note)


def test_hints_use_the_name_of_a_job_unless_a_newer_job_has_the_same_name(
    jobs: Jobs, service: Service, tool: Tool, home: Path
) -> None:
    service.always(accepting(service))
    first = jobs.send(of_phones(home, [ANA]), "--name", "my orders")
    show = ("job", "show", first, "--no-color")
    assert "→ Check the delivery: msgctl job states 'my orders'\n" in tool(*show, screen=True).err
    service.always(respond({"id": f"m{ANA}", "state": "rejected"}))
    done = tool("job", "states", "my orders", "--no-color", screen=True)
    assert done.err.endswith("→ Resend to them: msgctl job resend 'my orders' --only undelivered\n")
    tool.clock.now += 86_400
    service.always(accepting(service))
    jobs.send(of_phones(home, [ANA]), "--name", "my orders")
    assert f"msgctl job resend {first} --only undelivered\n" in tool(*show, screen=True).err


def test_job_list_and_job_show_agree(mixed: str, jobs: Jobs) -> None:
    shown = jobs.shown(mixed)
    assert list(shown) == SUMMARY_FIELDS
    assert jobs("job", "list", "--json").document == [shown]
    assert (shown["job"], shown["command"], shown["state"]) == (mixed, "sms bulk", "paused")
    assert {name: shown[name] for name in OUTCOMES} == {
        "accepted": 1,
        "refused": 5,
        "unknown": 1,
        "pending": 1,
        "invalid": 1,
        "duplicate": 1,
    }
    assert (shown["recipients"], shown["requests"], shown["credits"]) == (10, 7, 2)


def test_a_broken_ledger_does_not_hide_the_others(jobs: Jobs, service: Service, home: Path) -> None:
    service.always(accepting(service))
    job = jobs.send(of_phones(home, [ANA]))
    for name, content in (("20200101-000000", b"not a ledger"), ("20990101-000000", b"")):
        path = folder(home) / f"{name}.sqlite3"
        path.write_bytes(content)
        path.chmod(0o600)
    done = jobs("job", "list", "--json")
    assert (done.code, [each["job"] for each in done.document]) == (3, [job])
    assert [name in done.err for name in ("20200101-000000", "20990101-000000")] == [True, True]
    assert jobs("job", "show", "20200101-000000").code == 3
    assert jobs("job", "show", job).code == 0


@pytest.mark.parametrize(
    "arguments", [("show",), ("resume",), ("report",), ("states",), ("remove", "--yes")], ids=" ".join
)
def test_an_unknown_job_is_a_usage_error(arguments: tuple[str, ...], jobs: Jobs, service: Service, home: Path) -> None:
    for job in (NOWHERE, "../" + NOWHERE, "\x1b[2J"):
        done = jobs("job", arguments[0], job, *arguments[1:])
        done.refused(2, "There is no job", "msgctl job list")
        assert "\x1b" not in done.err
    assert (service.received, files(home)) == ([], [])


# --- report


def test_a_report_for_a_spreadsheet(mixed: str, jobs: Jobs, tool: Tool, home: Path) -> None:
    path = home / "report.xlsx"
    for more, written in (
        ((), 10),
        (("--only", "refused", "--fields", "phone,credits"), 5),
        (("--only", "excluded"), 0),
    ):
        done = jobs("job", "report", mixed, "--to", str(path), *more)
        assert (done.code, done.out, done.err) == (0, "", f"Wrote {written} rows to ~/report.xlsx.\n")
        found = CalamineWorkbook.from_path(str(path)).get_sheet_by_index(0).to_python()
        wanted = jobs.report(mixed, *more[:2])
        if "--fields" in more:
            wanted = [{name: row[name] for name in more[-1].split(",")} for row in wanted]
        assert [[*row] for row in wanted[:1]] in ([*found[:1]], [])
        assert found[1:] == [["" if cell is None else cell for cell in row.values()] for row in wanted]


def test_a_report_that_cannot_be_written_is_an_error(mixed: str, jobs: Jobs, home: Path) -> None:
    jobs("job", "report", mixed, "--to", str(home / "report.txt")).refused(2, "must end in .xlsx", "report.txt")
    jobs("job", "report", mixed, "--to", str(home / "missing" / "report.xlsx")).refused(3, "missing does not exist")
    jobs("job", "report", mixed, "--to", str(home / "report.xlsx"), "--fields", "phon").refused(
        2, "Did you mean phone?"
    )
    assert not (home / "report.xlsx").exists()


@pytest.mark.parametrize("only", ["accepted", "refused", "unknown", "pending"])
def test_a_report_of_one_outcome(only: str, mixed: str, jobs: Jobs) -> None:
    rows = jobs.report(mixed, "--only", only)
    assert rows == [row for row in jobs.report(mixed) if row["outcome"] == only]
    assert len(rows) == jobs.shown(mixed)[only]


def test_a_report_in_every_format(mixed: str, jobs: Jobs) -> None:
    rows = jobs.report(mixed)
    as_text = [{name: "" if value is None else str(value) for name, value in row.items()} for row in rows]
    for form, delimiter in (("csv", ","), ("tsv", "\t")):
        done = jobs("job", "report", mixed, "-o", form)
        assert list(csv.DictReader(io.StringIO(done.out), delimiter=delimiter)) == as_text
    lines = jobs("job", "report", mixed).out.splitlines()
    assert lines[0].split() == list(rows[0])
    assert [line.split()[:3] for line in lines[1:]] == [[row["line"], row["phone"], row["outcome"]] for row in as_text]
    narrow = jobs("job", "report", mixed, "-o", "csv", "--fields", "phone,outcome").out.splitlines()
    assert narrow[:2] == ["phone,outcome", f"{numbers(1)[0]},accepted"]


# --- resume


def test_a_job_continues_where_it_stopped(mixed: str, jobs: Jobs, service: Service) -> None:
    service.always(accepting(service))
    before = len(sends(service))
    done = jobs("job", "resume", mixed, "--json")
    assert (done.code, list(done.document), done.document["state"]) == (6, SUMMARY_FIELDS, "done")
    assert [phones(each) for each in sends(service)[before:]] == [[numbers(8)[-1]]]
    assert counts(done.document) == {"accepted": 2, "refused": 5, "unknown": 1, "invalid": 1, "duplicate": 1}


def test_a_dry_run_changes_nothing(mixed: str, jobs: Jobs, service: Service, home: Path) -> None:
    def stored() -> list[Any]:
        with closing(sqlite3.connect(folder(home) / f"{mixed}.sqlite3")) as db:
            return [*db.execute("SELECT * FROM job"), *db.execute("SELECT * FROM request")]

    before, asked = stored(), len(service.received)
    for arguments in (
        ("resume", "--resend-unknown", "--max-credits", "9"),
        ("states", "--rate", "7", "--concurrency", "2"),
    ):
        done = jobs("job", arguments[0], mixed, *arguments[1:], "--dry-run", "--json")
        assert (done.code, done.document) == (0, jobs.shown(mixed))
    assert (stored(), len(service.received)) == (before, asked)


def test_only_a_run_that_sends_changes_the_limits_of_a_job(mixed: str, jobs: Jobs, home: Path) -> None:
    path = folder(home) / f"{mixed}.sqlite3"
    before = facts(path)[0]
    done = jobs("job", "resume", mixed, "--resend-unknown", "--max-credits", "9", terminal=True, stdin="n\n")
    assert "Cancelled" in done.err
    jobs("job", "states", mixed, "--rate", "50", "--concurrency", "2")
    assert facts(path)[0] == before
    jobs("job", "resume", mixed, "--rate", "50")
    assert facts(path)[0] == replace(before, rate=50)


def test_a_job_does_not_continue_at_another_service(
    mixed: str, jobs: Jobs, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = len(service.received)
    write_config(profile("other", base_url="https://other.example/api/v1"))
    for arguments in ((), ("-p", "other"), ("-p", "sandbox")):
        if not arguments:
            monkeypatch.setenv("MSGCTL_BASE_URL", service.base_url + "/v2")
        for command in ("resume", "states"):
            jobs("job", command, mixed, *arguments).refused(
                3, f"The job uses client 12345 of {service.base_url}, but profile"
            )
        monkeypatch.setenv("MSGCTL_BASE_URL", service.base_url)
    assert len(service.received) == asked


def test_a_job_does_not_continue_from_another_account(
    jobs: Jobs, service: Service, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was started with the three variables."""
    write_config(profile("main", base_url=service.base_url, client=7))
    service.will(BALANCE)
    job = jobs.send(of_phones(home, [ANA]), "--at", "2036-01-01 09:00")
    assert jobs.shown(job)["profile"] == "environment"
    assert jobs("job", "resume", job, "--dry-run").code == 0
    asked = len(service.received)
    jobs("-p", "main", "job", "resume", job).refused(3, "The job uses client 12345 of", "uses client 7 of")
    monkeypatch.delenv("MSGCTL_CLIENT")
    jobs("job", "resume", job).refused(3, "MSGCTL_CLIENT", "-p")
    assert len(service.received) == asked


def test_a_job_keeps_its_profile(jobs: Jobs, service: Service, home: Path) -> None:
    sandbox = Jobs(jobs.tool, "-p", "sandbox")
    done = sandbox.sms(of_phones(home, [ANA]), "--yes", "--json", "--max-credits", "0")
    assert (done.code, counts(done.document)) == (6, {"pending": 1})
    done = jobs("job", "resume", done.document["job"], "--max-credits", "5", "--json")
    assert (done.code, done.document["profile"], counts(done.document)) == (0, "sandbox", {"accepted": 1})
    assert service.received == []


# --- delivery states


class Deliveries:
    """Responds with delivery states from ``states``, by message ID; a behaviour in it is used unchanged."""

    def __init__(self, service: Service, states: Mapping[str, Any]) -> None:
        self._service = service
        self.states = dict(states)
        service.always(self)

    def __call__(self, connection: socket.socket) -> None:
        message = dict(self._service.received[-1].query)["id"]
        state = self.states.get(message, "sent")
        behave = state if callable(state) else respond({"state": state, "id": message})
        behave(connection)

    def asked(self) -> Iterator[str]:
        """The messages that were checked since the last call."""
        found = [dict(each.query)["id"] for each in self._service.received if each.path.endswith("/messages-state")]
        self._service.received.clear()
        yield from (message.removeprefix("m") for message in found)


@pytest.fixture
def sent(jobs: Jobs, service: Service, home: Path) -> str:
    """A job of three that were accepted."""
    service.always(accepting(service))
    return jobs.send(of_phones(home, [ANA, LUIS, EVA]))


@pytest.mark.every_set
def test_delivery_states_are_filled_in(sent: str, jobs: Jobs, service: Service) -> None:
    states = Deliveries(service, {f"m{ANA}": "delivered", f"m{LUIS}": "rejected"})
    done = jobs("job", "states", sent, "--json")
    assert done.code == 0
    assert done.document["states"] == {"delivered": 1, "rejected": 1, "sent": 1}
    assert list(done.document) == [*SUMMARY_FIELDS[:-2], "states", *SUMMARY_FIELDS[-2:]]
    assert jobs.shown(sent) == done.document
    assert [row["state"] for row in jobs.report(sent)] == ["delivered", "rejected", "sent"]
    assert [row["status"] for row in jobs.report(sent)] == ["queued"] * 3
    assert [row["phone"] for row in jobs.report(sent, "--only", "undelivered")] == [LUIS]
    assert [row["phone"] for row in jobs.report(sent, "--only", "undelivered,unknown")] == [LUIS]
    assert len(jobs.report(sent, "--only", "undelivered", "--only", "accepted")) == 3
    assert list(states.asked()) == [ANA, LUIS, EVA]

    states.states[f"m{EVA}"] = None
    assert jobs("job", "states", sent, "--json").document["states"] == {"delivered": 1, "rejected": 1, "sent": 1}
    assert list(states.asked()) == [EVA]
    states.states[f"m{EVA}"] = "delivered"
    assert jobs("job", "states", sent, "--json").document["states"] == {"delivered": 2, "rejected": 1}
    assert list(states.asked()) == [EVA], "a final state is not checked again"
    jobs("job", "states", sent)
    assert list(states.asked()) == []


@pytest.mark.every_set
def test_following_ends_once_every_state_is_final(sent: str, tool: Tool, service: Service) -> None:
    states = Deliveries(service, {f"m{ANA}": "delivered", f"m{LUIS}": "rejected", f"m{EVA}": drop})
    later = iter([{f"m{EVA}": "sent"}, {f"m{EVA}": "delivered"}])
    done = tool("job", "states", sent, "--follow", "-o", "csv", sleep=lambda _: states.states.update(next(later)))
    assert done.code == 0, done.err
    assert all(part in done.err for part in ("1 delivered", "1 rejected", "1 sent"))
    assert list(states.asked()).count(LUIS) == 1
    assert "delivered" in tool("job", "show", sent, "--json").document["states"]


def test_following_ends_at_the_states_to_wait_for(sent: str, tool: Tool, service: Service) -> None:
    states = Deliveries(service, {f"m{ANA}": "sent", f"m{LUIS}": "rejected", f"m{EVA}": "queued"})
    done = tool(
        *("job", "states", sent, "--follow", "--until", "sent", "--json"),
        sleep=lambda _: states.states.update({f"m{EVA}": "delivered"}),
    )
    assert (done.code, done.document["states"]) == (0, {"sent": 1, "delivered": 1, "rejected": 1})
    assert list(states.asked()).count(ANA) == 1


def test_following_exits_with_6_if_the_time_is_over_first(sent: str, tool: Tool, service: Service) -> None:
    Deliveries(service, {f"m{ANA}": "delivered", f"m{LUIS}": "sent", f"m{EVA}": "queued"})
    done = tool("job", "states", sent, "--follow", "--max-wait", "25", "--json")
    assert (done.code, done.document["states"]) == (6, {"delivered": 1, "queued": 1, "sent": 1})
    assert done.error["message"] == "2 messages did not reach a final state in time"
    for option in (("--until", "sent"), ("--max-wait", "9")):
        tool("job", "states", sent, *option).refused(2, f"{option[0]} needs --follow")


@pytest.mark.every_set
@pytest.mark.documented
def test_recipients_who_share_an_id_are_checked_with_one_request(
    tool: Tool, jobs: Jobs, service: Service, home: Path
) -> None:
    data = {"state": "Enviado", "phone": f"{ANA},{LUIS},{EVA}", "credits": 3}
    service.always(respond({"status": 1, "id": "D1", "data": data}))
    job = jobs.send(of_phones(home, [ANA, LUIS, EVA]))
    assert [(row["id"], row["status"]) for row in jobs.report(job)] == [("D1", "Enviado")] * 3
    assert jobs.shown(job)["credits"] == 3
    service.received.clear()
    messages = [{"phone": LUIS, "state": "Rechazado"}, {"phone": ANA[2:], "state": "Entregado"}, {"state": "Enviado"}]
    service.always(respond(json.dumps(messages).encode()))
    assert tool("job", "states", job).code == 0
    assert [request.query[-1] for request in service.received] == [("id", "D1")]
    assert [row["state"] for row in jobs.report(job)] == ["Entregado", "Rechazado", "Enviado"]
    assert [row["phone"] for row in jobs.report(job, "--only", "undelivered")] == [LUIS]
    service.always(respond(json.dumps({"data": [{"phone": EVA, "state": "leído"}]}).encode()))
    assert tool("job", "states", job, "--follow").code == 0
    assert jobs.shown(job)["states"] == {"Entregado": 1, "Rechazado": 1, "leído": 1}


def test_ctrl_c_ends_following_with_what_is_known(sent: str, tool: Tool, service: Service) -> None:
    Deliveries(service, {f"m{ANA}": "delivered"})

    def interrupted(_: float) -> None:
        raise KeyboardInterrupt

    done = tool("job", "states", sent, "--follow", "--json", sleep=interrupted)
    assert (done.code, done.document["states"]) == (130, {"sent": 2, "delivered": 1})
    assert f"msgctl job states {sent} --follow" in done.error["hint"]


def test_a_state_that_cannot_be_checked_does_not_stop_the_others(sent: str, jobs: Jobs, service: Service) -> None:
    states = Deliveries(service, {f"m{LUIS}": REFUSAL, f"m{EVA}": REFUSAL})
    done = jobs("job", "states", sent, "--json")
    assert (done.code, done.document["states"]) == (1, {"sent": 1})
    assert "2 delivery states could not be checked. The first: " in done.error["message"]
    assert "NOT_NOW" in done.error["message"]
    assert [row["state"] for row in jobs.report(sent)] == ["sent", None, None]
    states.states = {f"m{LUIS}": "delivered"}
    assert jobs("job", "states", sent, "--json").document["states"] == {"sent": 2, "delivered": 1}


def test_messages_that_could_not_be_checked_are_checked_first(jobs: Jobs, service: Service, home: Path) -> None:
    service.always(accepting(service))
    job = jobs.send(of_phones(home, numbers(12)))
    service.received.clear()
    states = Deliveries(service, {f"m{phone}": drop for phone in numbers(12)[4:]})
    done = jobs("job", "states", job, "--json")
    assert (done.code, done.document["states"]) == (4, {"sent": 4})
    assert "Stopped after checking 9" in done.error["message"]
    assert f"msgctl job states {job}" in done.error["hint"]
    assert sorted(set(states.asked())) == numbers(12)[:9]

    states.states.clear()
    assert jobs("job", "states", job, "--json").document["states"] == {"sent": 12}
    assert list(states.asked()) == [*numbers(12)[4:], *numbers(12)[:4]], "those that could not be checked come first"


@pytest.mark.every_set
def test_messages_without_an_id_are_not_checked(jobs: Jobs, service: Service, home: Path) -> None:
    entries = [{"id": None, "status": "queued", "credits": 0, "phone": ANA}]
    service.will(BALANCE, respond({"data": entries}))
    job = jobs.send(of_phones(home, [ANA]))
    assert jobs("job", "states", job).code == 0
    assert jobs.report(job)[0]["status"] == "queued"


# --- remove


def test_an_empty_ledger_is_damaged_and_can_be_removed(mixed: str, jobs: Jobs, home: Path) -> None:
    ledger = folder(home) / f"{mixed}.sqlite3"
    ledger.write_bytes(b"")
    jobs("job", "show", mixed).refused(3, "is empty", "Restore it from a backup")
    assert jobs("job", "remove", mixed, "--yes").code == 0
    assert files(home) == []


def test_a_job_is_removed(mixed: str, jobs: Jobs, home: Path) -> None:
    jobs("job", "remove", mixed).refused(2, "--yes")
    done = jobs("job", "remove", mixed, terminal=True, stdin="n\n")
    assert (done.code, f"Delete job {mixed}" in done.err) == (130, True)
    assert jobs.shown(mixed)["job"] == mixed
    done = jobs("job", "remove", mixed, terminal=True, stdin="y\n")
    assert (done.code, done.out) == (0, "")
    assert files(home) == []


# --- which job


@pytest.fixture
def two(jobs: Jobs, service: Service, tool: Tool, home: Path) -> tuple[str, str]:
    """Two jobs of one name."""
    service.always(accepting(service))
    made = []
    for phone in (ANA, LUIS):
        made.append(jobs.send(of_phones(home, [phone]), "--name", "November offer"))
        tool.clock.now += 0.1
    return made[0], made[1]


@pytest.mark.parametrize("arguments", [(), (NOWHERE, "--last")], ids=["none", "both"])
def test_a_job_or_last_is_required(arguments: tuple[str, ...], jobs: Jobs) -> None:
    for command in ("show", "resume", "report", "states"):
        assert jobs("job", command, *arguments).code == 2


def test_a_job_started_from_the_environment_needs_the_environment_to_resume(
    mixed: str, jobs: Jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MSGCTL_KEY")
    jobs("job", "resume", mixed).refused(3, "The job was started with the environment variables", "Set them again")


def test_columns_with_the_name_of_a_report_column_get_a_prefix(jobs: Jobs, service: Service, home: Path) -> None:
    service.will(BALANCE, REFUSAL)
    job = jobs.send(table(home, "phone,status,file.status", f"{ANA},new,old"), code=6)
    service.always(accepting(service))
    again = jobs("job", "resend", job, "--only", "refused", "--yes", "--json").document["job"]
    for each in (job, again):
        (row,) = jobs.report(each)
        assert list(row.items())[8:] == [("file.status", "new"), ("file.file.status", "old")]


def test_jobs_can_be_read_on_a_read_only_disk(
    jobs: Jobs, service: Service, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    service.always(accepting(service))
    with mounted(tmp_path / "disk", "8m") as disk:
        monkeypatch.setenv("XDG_STATE_HOME", str(disk.path))
        job = jobs.send(of_phones(home, [ANA]))
        shown, rows = jobs.shown(job), jobs.report(job)
        with disk.read_only():
            assert (jobs.shown(job), jobs.report(job)) == (shown, rows)
            assert jobs("job", "list", "--json").document == [shown]
            assert [each["phone"] for each in jobs("history", "--json").document] == [ANA]


def test_reading_a_job_leaves_its_files_as_they_are(jobs: Jobs, service: Service, home: Path) -> None:
    """The log beside a ledger is what a killed process had not written into the ledger yet."""
    service.always(accepting(service))
    file = of_phones(home, [ANA])
    job = jobs.send(file)
    paths = [folder(home) / f"{job}.sqlite3{suffix}" for suffix in ("", "-wal")]
    with closing(sqlite3.connect(paths[0])) as db:
        db.execute("UPDATE result SET delivery = 'sent'")
        db.commit()
        left = [path.read_bytes() for path in paths]
    for path, content in zip(paths, left, strict=True):
        path.write_bytes(content)
    assert jobs.shown(job)["states"] == {"sent": 1}
    for line in (("job", "list"), ("job", "report", job), ("history",), ("job", "resend", job, "--dry-run")):
        assert jobs(*line).code == 0, line
    jobs.sms(file, "--yes").refused(2, job)
    jobs.tool.clock.now += 2 * 86_400
    jobs("job", "remove", "--before", "1d").refused(2, "Cannot ask")
    assert [path.read_bytes() for path in paths] == left


# --- remove --before


def test_remove_deletes_finished_jobs_before_a_date(
    mixed: str, two: tuple[str, str], jobs: Jobs, tool: Tool, home: Path
) -> None:
    assert "There is nothing to delete" in jobs("job", "remove", "--before", "today").err
    tool.clock.now += 3 * 86_400
    jobs("job", "remove", "--before", "1d").refused(2, "Cannot ask", "--yes")
    asked = jobs("job", "remove", "--before", "1d", terminal=True, stdin="n\n")
    assert 'Delete 2 jobs of profile "environment" and their recipient lists? [y/N]' in asked.err
    jobs("job", "remove", two[0], "--yes")
    asked = jobs("job", "remove", "--before", "1d", terminal=True, stdin="n\n")
    assert 'Delete 1 job of profile "environment" and its recipient list? [y/N]' in asked.err
    assert jobs("job", "remove", "--before", "1d", "--yes").code == 0
    assert [each["job"] for each in jobs("job", "list", "--json").document] == [mixed], "an unfinished job stays"


def test_states_are_checked_at_a_rate(sent: str, jobs: Jobs, service: Service) -> None:
    states = Deliveries(service, {})
    assert jobs("job", "states", sent, "--rate", "100", "--concurrency", "1").code == 0
    assert list(states.asked()) == [ANA, LUIS, EVA]


def test_a_job_is_locked_while_it_runs(jobs: Jobs, service: Service, home: Path) -> None:
    store = Store(folder(home))
    seen: list[list[bool]] = []
    service.always(accepting(service, look=lambda: seen.append([store.is_running(each) for each in store.ids()])))
    jobs.send(of_phones(home, [ANA]))
    assert seen == [[True]]


# --- resend


@pytest.mark.every_set
def test_resend_makes_a_job_of_the_undelivered(sent: str, jobs: Jobs, service: Service) -> None:
    Deliveries(service, {f"m{LUIS}": "rejected", f"m{EVA}": "delivered"})
    jobs("job", "states", sent)
    service.always(accepting(service))
    jobs("job", "resend", sent).refused(2, "this is not a terminal", "--yes")
    done = jobs("job", "resend", sent, "--yes", "--json")
    assert (done.code, counts(done.document)) == (0, {"accepted": 1})
    assert done.document["job"] != sent
    assert phones(sends(service)[-1]) == [LUIS]
    assert jobs.shown(sent)["accepted"] == 3
    none = jobs("job", "resend", sent, "--only", "refused", "--yes")
    assert (none.code, none.out, none.err) == (0, "", f"Job {sent} has no refused recipients; nothing was sent\n")


def test_resend_sends_each_their_own_message(jobs: Jobs, service: Service, home: Path) -> None:
    file = table(home, "phone,name", f"{ANA},Ana", f"{LUIS},Luis", f"{EVA},Ana")
    service.will(BALANCE, REFUSAL, REFUSAL)
    job = jobs.send(file, text="Hello {name}", code=6)
    service.always(accepting(service))
    before = len(sends(service))
    plan = jobs("job", "resend", job, "--only", "refused", "--dry-run", "--json").document
    assert (plan["messages"], plan["segments"], plan["credits"]) == (3, 3, 3)
    done = jobs("job", "resend", job, "--only", "refused", "--yes", "--json")
    assert counts(done.document) == {"accepted": 3}
    again = {dict(each.form)["sms"]: phones(each) for each in sends(service)[before:]}
    assert again == {"Hello Ana": [ANA, EVA], "Hello Luis": [LUIS]}
    assert [row["name"] for row in jobs.report(done.document["job"])] == ["Ana", "Luis", "Ana"]
