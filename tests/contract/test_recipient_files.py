"""Files with many rows or unusual cells. `rules/test_reader.py` and `stories/personal-links` have the rest."""

from __future__ import annotations

import csv
from pathlib import Path

from support.jobs import accepting, numbers, of_phones, sends, sent, shown
from support.sandbox import Sandbox
from support.service import Service, respond
from support.tool import Tool


def test_a_job_may_have_more_rows_than_a_statement_has_parameters(home: Path, tool: Tool, service: Service) -> None:
    service.always(accepting(service))
    excluded = of_phones(home, numbers(1_001), "excluded.csv")
    job = sent(tool, of_phones(home, numbers(2_002)), "--exclude", excluded, "--batch-size", "1000")
    counts = shown(tool, job)
    assert (counts["accepted"], counts["excluded"], counts["recipients"]) == (1_001, 1_001, 2_002)
    assert [phone for each in sends(service) for phone in each.phones] == numbers(2_002)[1_001:]
    assert tool("job", "report", job, "--only", "delivered", "--json").document == []


def test_every_person_of_a_long_list_is_compared_with_opt_outs_repeats_and_limits(
    home: Path, tool: Tool, service: Service
) -> None:
    service.always(accepting(service))
    everyone = numbers(1_200)
    some = [everyone[place] for place in (0, 1, 499, 500, 700, 1_000, 1_199)]
    file, whole = of_phones(home, everyone), ("--batch-size", "1000")
    assert tool("optout", "import", of_phones(home, some, "some.csv")).code == 0
    assert shown(tool, sent(tool, file, *whole))["excluded"] == len(some)
    assert tool("optout", "remove", *some).code == 0
    sent(tool, file, *whole)  # the others have got the message
    assert [phone for each in sends(service)[2:] for phone in each.phones] == some
    assert sorted(phone for each in sends(service) for phone in each.phones) == everyone
    assert tool("history", "--json", "--phone", everyone[-1]).document[0]["phone"] == everyone[-1]
    assert sorted(entry["phone"] for entry in tool("history", "--json").document) == everyone
    done = tool("sms", "bulk", file, "-m", "Again", "--at-most", "1/day", "--yes", "--json")
    assert "have reached the limit" in done.error["message"]


def test_empty_cells_at_the_end_of_a_row_are_not_stored(home: Path, tool: Tool, service: Service) -> None:
    service.always(accepting(service))
    people = home / "people.csv"
    names = ",".join(["phone", *(f"c{number}" for number in range(999))])
    people.write_text(names + "".join(f"\n{phone},{phone}{',' * 998}" for phone in numbers(60)))
    job = sent(tool, str(people))
    assert sum(file.stat().st_size for file in home.rglob("store.sqlite3*")) < 2**18
    [row, *_] = tool("job", "report", job, "--json").document
    assert (row["c0"], row["c1"], row["c998"]) == (row["phone"], "", "")


def test_url_bulk_and_url_clicks_do_not_change_the_cells_of_a_file(sandbox: Sandbox, home: Path) -> None:
    people, links = home / "people.csv", home / "links.csv"
    cells = ["\u202a+57 300 123 4567\u202c", "Mar\xad\u200bía\tJosé", "=1+1", "one\r\ntwo\rthree\n", "\t@", "a\\b"]
    with people.open("w", newline="") as file:
        csv.writer(file).writerows([["phone", *"abcde"], cells])
    done = sandbox("url", "bulk", str(people), "--to", "https://shop.example/{line}", "--name", "sale-{line}")
    links.write_bytes(done.stdout)
    [row] = sandbox.document("url", "clicks", str(links), "--name", "sale-{line}")
    assert [row[name] for name in ["phone", *"abcde"]] == cells
    assert sandbox("sms", "bulk", str(links), "-m", "Hola {a}", "--yes").code == 0
    assert sandbox.document("url", "stats", "sale-2")["urlLong"] == "https://shop.example/2"


def test_url_bulk_makes_no_request_for_each_row_with_a_key_that_the_service_refuses(
    home: Path, tool: Tool, service: Service
) -> None:
    service.always(respond({"error": "unauthorized"}, 401))
    people = of_phones(home, numbers(150))
    done = tool("url", "bulk", people, "--to", "https://shop.example/", "--name", "sale-{line}", "--json")
    assert done.code == 6
    assert [row["link"] for row in done.document] == [None] * 150
    assert len(service.received) < 110
    assert "not requested, because the service would refuse each of them" in done.err
