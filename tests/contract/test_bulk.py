"""The bulk commands before anything is sent: errors, the summary and the question."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.jobs import (
    ANA,
    EVA,
    LUIS,
    REFUSAL,
    Jobs,
    accepting,
    counts,
    files,
    numbers,
    of_phones,
    phones,
    sends,
    table,
)
from support.service import Service, respond
from support.tool import Tool

COMMANDS = {
    "sms bulk": ("-m", "Hello {name}"),
    "call bulk": ("-m", "Hello {name}", "--voice", "Mia"),
    "chatapp bulk": ("--template", "hello"),
}
each_command = pytest.mark.parametrize("command", list(COMMANDS))
SMS = ("-m", "Hello {name}")


@pytest.fixture
def customers(home: Path) -> str:
    return table(home, "phone,name", f"{ANA},Ana", f"{LUIS},Luis", "+57 300 123 4567,Ana María", f"{EVA},Eva")


@pytest.fixture
def broken(home: Path) -> str:
    return table(home, "phone,name", f"{ANA},Ana", "nobody,Luis", f"{EVA},", name="broken.csv")


# --- dry run


@each_command
def test_a_dry_run_reads_the_balance_and_stops(
    command: str, customers: str, jobs: Jobs, service: Service, home: Path
) -> None:
    service.always(respond({"status": 41}))
    done = jobs(*command.split(), customers, *COMMANDS[command], "--dry-run", "--json")
    assert done.code == 0
    assert [each.path for each in service.received] == ["/api/v1/balance"]
    assert files(home) == []
    firsts = {
        "sms bulk": {"sms": "Hello Ana"},
        "call bulk": {"message": "Hello Ana"},
        "chatapp bulk": {"body": ["Ana"]},
    }
    assert done.document == {
        "command": command,
        "file": customers,
        "profile": "environment",
        "recipients": 4,
        "invalid": 0,
        "duplicate": 1,
        "excluded": 0,
        "blank": 0,
        "messages": 3,
        "segments": 3 if command == "sms bulk" else None,
        "credits": 3,
        "balance": 41,
        "first": firsts[command],
        "countries": {"CO": 3},
        "most_expensive": None,
        "invalid_rows": [],
        "duplicate_rows": [{"line": 4, "phone": ANA, "reason": "same number as line 2"}],
        "excluded_rows": [],
        **dict.fromkeys(("opted_out", "repeats", "over_limit"), 0),
        **dict.fromkeys(("at_most", "window", "due")),
    }


def test_the_summary_has_the_credits_by_country_and_the_most_expensive_message(
    home: Path, tool: Tool, service: Service
) -> None:
    service.will(*[respond({"status": 10})] * 4)
    long = "María José 🎉 " * 8
    file = table(home, "phone,name", f"{ANA},Ana", f"{LUIS},{long}", "+12025550123,Bob")
    done = tool("sms", "bulk", file, *SMS, "-n", "--json")
    assert done.document["countries"] == {"CO": 3, "US": 1}
    most = done.document["most_expensive"]
    assert (most["line"], most["phone"], most["segments"], most["credits"]) == (3, LUIS, 2, 2)
    piped = tool(
        "sms", "bulk", file, *SMS, "-n", "--fields", "countries,most_expensive", "-o", "tsv", "--no-header"
    ).out
    assert [json.loads(cell) for cell in piped.split("\t")] == [{"CO": 3, "US": 1}, most]
    shown = tool("sms", "bulk", file, *SMS, "-n", terminal=True).out
    assert "CO 3, US 1" in shown
    assert f"line 3 · {LUIS} · 2 segments: í, 🎉 are not in GSM-7" in shown
    assert long.strip() in tool("sms", "bulk", file, *SMS).err, "a pipe is not folded"


def test_the_summary_comes_before_the_first_request(customers: str, jobs: Jobs, service: Service) -> None:
    service.always(accepting(service, balance=2))
    done = jobs.sms(customers, "--yes")
    assert done.code == 0
    printed = " ".join(done.err.split())
    for line in (
        "customers.csv · account environment",
        "3 of 4 1 left out: 1 duplicate",
        "about 3 of 2 not enough",
    ):
        assert line in printed
    assert f"Line 4: {ANA}: same number as line 2" in done.err
    assert done.err.index("about 3 of 2") < done.err.index("job show")


def test_a_balance_that_is_refused_is_noted(customers: str, jobs: Jobs, service: Service) -> None:
    service.will(REFUSAL)
    service.always(accepting(service))
    done = jobs.sms(customers, "--yes")
    assert done.code == 0
    assert "Balance not checked: The service refused the request (520): NOT_NOW" in done.err
    assert "about 3 balance not checked" in " ".join(done.err.split())


# --- invalid rows


def test_rows_that_are_left_out_keep_their_columns_in_the_report(jobs: Jobs, service: Service, home: Path) -> None:
    service.always(accepting(service))
    rows = (f"{ANA},Ana,Cali", "nobody,Luis,Cali", f"{EVA},,Cali", f"{ANA},Ana,Quito", f"{LUIS},Luis")
    done = jobs.sms(table(home, "phone,name,city", *rows), "--skip-invalid", "--yes", "--json", text="Hello {name}")
    assert [(row["outcome"], row["name"], row["city"]) for row in jobs.report(done.document["job"])] == [
        ("accepted", "Ana", "Cali"),
        ("invalid", "Luis", "Cali"),
        ("invalid", "", "Cali"),
        ("duplicate", "Ana", "Quito"),
        ("accepted", "Luis", ""),
    ]


# --- templates and options


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("--batch-size", "0"), '--batch-size must be from 1 to 1,000, not "0"'),
        (("--concurrency", "0"), "--concurrency must be"),
        (("--rate", "0"), "--rate must be"),
        (("--rate", "nan"), "--rate must be"),
        (("--max-credits", "-1"), "--max-credits must be"),
        (("--phone-column", "telephone"), 'has no column "telephone"'),
        (("--fields", "eaten"), "eaten"),
        (("--message-file", "x.txt"), "either --message or --message-file"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_invalid_options_are_usage_errors(
    options: tuple[str, ...], expected: str, customers: str, jobs: Jobs, service: Service, home: Path
) -> None:
    jobs("sms", "bulk", customers, *SMS, "--yes", *options).refused(2, expected)
    assert (service.received, files(home)) == ([], [])


def test_one_note_for_all_rows_suggests_gsm7(jobs: Jobs, service: Service, home: Path) -> None:
    service.always(accepting(service))
    file = table(home, "phone,name", f"{ANA},José 🎉", f"{LUIS},Иван", f"{EVA},Eva")
    text = "¡Hola {name}! Tu pedido está listo" + "." * 60
    offered = jobs("sms", "bulk", file, "-m", text, "--dry-run")
    assert offered.err.count("Some messages would need fewer segments with --gsm7\n") == 1
    for more in (("--gsm7", "--skip-invalid"), ("-m", "Иван")):
        assert "fewer segments" not in jobs("sms", "bulk", file, "-m", text, *more, "--dry-run").err
    jobs("sms", "bulk", file, "-m", text, "--gsm7", "-y").refused(2, "line 3: GSM-7 has no letter close to И")
    written = jobs("sms", "bulk", file, "-m", text, "--gsm7", "--skip-invalid", "--dry-run", "--json")
    plain = jobs("sms", "bulk", file, "-m", text, "--dry-run", "--json")
    assert (written.document["segments"], plain.document["segments"]) == (2, 6)
    assert "--gsm7 left out 🎉\n" in jobs("sms", "bulk", file, "-m", text, "--gsm7", "--skip-invalid", "-n").err


HELLO = ("-m", "Hello")


def test_rows_without_a_country_are_explained_before_any_advice_to_skip(
    jobs: Jobs, service: Service, home: Path
) -> None:
    national = [f"300 123 4{number:03}" for number in range(7)]
    file = table(home, "phone", *national, ANA, LUIS, "12")
    done = jobs("sms", "bulk", file, *HELLO, "--yes")
    done.refused(2, "7 of 10 rows of ", " have national numbers, and no country is known; nothing was sent")
    assert "Add --country-code CC" in done.err
    assert not [word for word in ("skip", "too short", "Greece") if word in done.err]
    assert (
        jobs("sms", "bulk", file, *HELLO, "--skip-invalid", "--country-code", "CO", "-n", "--json").document["invalid"]
        == 1
    )
    service.always(accepting(service))
    skipped = jobs("sms", "bulk", file, *HELLO, "--skip-invalid", "--yes")
    assert " have national numbers, and no country is known: add --country-code CC\n" in skipped.err
    few = jobs("sms", "bulk", table(home, "phone", *national[:2], ANA, LUIS), *HELLO, "--yes", "--again")
    few.refused(
        2, "2 of 4 rows of ", "are invalid, starting with line 2: not a valid phone number: read as +30, too short"
    )
    wrong = jobs("sms", "bulk", table(home, "phone", *national[:2]), *HELLO, "--yes", "--country-code", "ES")
    wrong.refused(2, "2 of 2 rows of ", "are invalid, starting with line 2:", "too long for Spain")
    none = jobs("sms", "bulk", table(home, "phone", *national), *HELLO, "--yes", "--skip-invalid")
    none.refused(2, "7 of 7 rows of ", "have national numbers", "--country-code CC")


# --- asking


def test_a_file_without_valid_rows_is_an_error_even_if_invalid_rows_are_skipped(
    jobs: Jobs, service: Service, home: Path
) -> None:
    file = table(home, "phone", "+57 1", "+57 2")
    error = jobs.sms(file, "--skip-invalid", "--yes", "--json").error
    assert (error["exit_code"], error["reason"], error["nothing_sent"]) == (2, "invalid_file", True)
    assert "has no valid rows: line 2: not a valid phone number" in error["message"]
    assert (files(home), sends(service)) == ([], [])


def test_a_file_of_people_who_have_reached_a_limit_is_an_error(everyone: str, jobs: Jobs, service: Service) -> None:
    service.always(accepting(service))
    jobs.send(everyone)
    error = jobs.sms(everyone, "--at-most", "1/day", "--yes", "--json", text="Another").error
    assert (error["exit_code"], error["reason"], error["nothing_sent"]) == (2, "invalid_file", True)
    assert "have reached the limit of 1/day; nothing" in error["message"]
    assert len(sends(service)) == 1


def test_more_than_a_thousand_rows_are_imported_and_excluded(home: Path, jobs: Jobs, service: Service) -> None:
    service.always(accepting(service))
    excluded = of_phones(home, numbers(1_001))
    file = table(home, "phone", *numbers(2_002), name="everyone.csv")
    job = jobs.send(file, "--exclude", excluded, "--batch-size", "1000")
    assert counts(jobs.shown(job)) == {"accepted": 1_001, "excluded": 1_001}
    assert [phone for each in sends(service) for phone in phones(each)] == numbers(2_002)[1_001:]
    assert jobs.report(job, "--only", "delivered") == []


def test_equal_messages_share_a_request_although_others_are_between_them(
    home: Path, jobs: Jobs, service: Service
) -> None:
    service.always(accepting(service))
    file = table(home, "phone,name", *(f"{phone},{'AB'[place % 2]}" for place, phone in enumerate(numbers(6))))
    jobs.send(file, text="Hello {name}")
    assert [len(phones(each)) for each in sends(service)] == [3, 3]


def test_a_job_that_is_refused_has_sent_nothing(home: Path, jobs: Jobs, service: Service) -> None:
    service.always(REFUSAL)
    service.will(respond({"status": 1000}))
    done = jobs.sms(of_phones(home, numbers(9)), "--batch-size", "1", "--yes", "--json")
    assert (done.code, done.error["reason"], done.error["nothing_sent"]) == (1, "refused", True)
    assert counts(done.document) == {"refused": 5, "pending": 4}


def test_without_a_connection_no_job_is_created(customers: str, jobs: Jobs, service: Service, home: Path) -> None:
    service.stop()
    done = jobs.sms(customers, "--skip-invalid", "--yes")
    done.refused(4, "nothing was sent, and no job was created")
    assert files(home) == []


@pytest.mark.parametrize("answer", ["n\n", "\n", "", "yess\n", "no\n", "sin\n"])
def test_any_answer_except_yes_cancels(answer: str, customers: str, jobs: Jobs, service: Service, home: Path) -> None:
    service.will(respond({"status": 100}))
    done = jobs.sms(customers, terminal=True, stdin=answer)
    assert (done.code, "Send 3 messages for about 3 credits? [y/N]" in done.err) == (130, True)
    assert len(service.received) == 1
    assert files(home) == []


@pytest.mark.parametrize("answer", ["y", "Yes", "s", "SI", "Sí", "si\u0301 "])
def test_yes_sends(answer: str, customers: str, jobs: Jobs, service: Service) -> None:
    service.always(accepting(service))
    assert jobs.sms(customers, terminal=True, stdin=f"{answer}\n").code == 0
    assert sorted(phone for each in sends(service) for phone in phones(each)) == sorted([ANA, LUIS, EVA])


@pytest.mark.parametrize("more", [("-m", "-"), ("--message-file", "-"), ("-m", "Hello", "--exclude", "-")])
def test_standard_input_can_be_read_only_once(more: tuple[str, ...], tool: Tool, service: Service) -> None:
    tool("sms", "bulk", "-", *more, "--yes", stdin=f"phone\n{ANA}\n").refused(
        2, "standard input is empty", "It can be read only once."
    )
    assert service.received == []
