"""`url bulk` and `url clicks` do not change the cells of a file. `stories/personal-links` has the rest."""

from __future__ import annotations

import csv
from pathlib import Path

from support.sandbox import Sandbox


def test_the_file_is_read_back_unchanged(sandbox: Sandbox, home: Path) -> None:
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
