"""Jobs with a window: no message is sent outside it, whatever the clock does, and no recipient is left out."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from jobs.ledgers import SPEC, Service, accept, miss, opened, outcomes
from msgctl.jobs import runner
from msgctl.jobs.ledger import Ledger
from msgctl.jobs.reader import Row
from msgctl.jobs.report import summary
from msgctl.jobs.runner import Runner
from msgctl.jobs.schedule import Window, ZoneFinder
from support.jobs import write_ledger
from support.tool import Clock

HOURS = replace(SPEC, window="08:00-19:00", days="mon-sat", batch_size=3, concurrency=1)
ZONES = {"57": "America/Bogota", "81": "Asia/Tokyo", "44": "Europe/London"}
COLOMBIAN, JAPANESE, BRITISH = "57300{:07}", "81901{:07}", "447400{:06}"


@pytest.fixture(autouse=True)
def fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "CLOCK_CHECK", 0.002)


@pytest.fixture(autouse=True)
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Run each test on a machine whose time zone is nobody's."""
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "Pacific/Auckland")
        time.tzset()
        yield
    time.tzset()


def at(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


def create(path: Path, phones: Sequence[str], now: float, text: str = "Hola") -> Path:
    """Create a job that sends one text to some phones."""
    zones = ZoneFinder(Window.parse(HOURS.window or "", HOURS.days), None, now)
    recipients = [Row(line, phone, (text,)) for line, phone in enumerate(phones, 2)]
    return write_ledger(path, recipients, HOURS, created=now, zones=zones)


class Watcher:
    """A service that notes the local times of those it sends to, and lets some time pass."""

    def __init__(self, clock: Clock, seconds: float) -> None:
        self._clock, self._seconds = clock, seconds
        self.outside: list[str] = []
        self.phones: list[str] = []

    def __call__(self, phones: Sequence[str]) -> list[dict[str, Any]]:
        for phone in phones:
            local = datetime.fromtimestamp(self._clock.now, ZoneInfo(ZONES[phone[:2]]))
            if not 8 <= local.hour < 19 or local.weekday() == 6:
                self.outside.append(f"{phone} at {local}")
        self.phones += phones
        self._clock.now += self._seconds
        return accept(phones)


def run(path: Path, clock: Clock, service: Service, jump: float = 0.0) -> list[float]:
    """Run a job while its clock jumps to each opening, at first ``jump`` seconds beside it; return the openings."""
    waited: list[float] = []
    ledger = opened(path)
    ledger.recover()
    work = Runner(ledger, service.connect, clock=clock)
    work.start()
    while not work.wait(0.001):
        until = work.waits_until
        if until is not None and until > clock.now:
            clock.now = until if waited and waited[-1] == until else until + jump
            waited.append(until)
    error = work.finish()
    ledger.close()
    assert error is None, error
    return waited


def test_a_job_waits_for_the_window_of_each_recipient(tmp_path: Path) -> None:
    clock = Clock(at("2026-11-21T22:00"))  # Saturday 17:00 in Bogota, Sunday 7:00 in Tokyo
    phones = [pattern.format(number) for number in range(4) for pattern in (COLOMBIAN, JAPANESE)]
    path = create(tmp_path / "job", phones, clock.now)
    watcher = Watcher(clock, 1)
    waited = run(path, clock, Service(otherwise=watcher))
    assert watcher.outside == []
    assert sorted(watcher.phones[:4]) == [COLOMBIAN.format(number) for number in range(4)]
    assert waited == [at("2026-11-22T23:00")]  # Monday 8:00 in Tokyo
    assert len(watcher.phones) == len(set(watcher.phones)) == 8


def test_a_job_shows_until_when_it_waits(tmp_path: Path) -> None:
    clock = Clock(at("2026-11-21T22:00"))
    path = create(tmp_path / "job", [JAPANESE.format(1), BRITISH.format(1)], clock.now)
    for now, running, wanted in (
        ("2026-11-22T07:00", True, ("waiting", "2026-11-22T23:00:00Z")),
        ("2026-11-22T07:00", False, ("paused", None)),
        ("2026-11-22T23:00", True, ("running", None)),
        ("2026-11-23T11:00", True, ("running", None)),
    ):
        clock.now = at(now)
        with closing(Ledger(path, clock=clock, read_only=True)) as ledger:
            shown = summary("job", ledger, running=running)
        assert (shown["state"], shown.get("until")) == wanted


@pytest.mark.parametrize("seed", range(4))
def test_a_clock_that_jumps_sends_to_everyone_once_and_inside_the_window(seed: int, tmp_path: Path) -> None:
    dice = random.Random(seed)
    clock = Clock(at("2026-03-20T00:00") + dice.randrange(300) * 86400)
    phones = [dice.choice([COLOMBIAN, JAPANESE, BRITISH]).format(number) for number in range(60)]
    path = create(tmp_path / "job", phones, clock.now)
    watcher = Watcher(clock, dice.choice([600, 3600, 20_000]))

    def unreliable(asked: Sequence[str]) -> list[dict[str, Any]]:
        if dice.random() < 0.2:
            clock.now += dice.choice([-7200, 30_000])
            return miss(asked)
        found = watcher(asked)
        clock.now += dice.choice([0, 0, -7200, 30_000])
        return found

    run(path, clock, Service(otherwise=unreliable), jump=dice.choice([0, 0, 3600, -1]))
    assert watcher.outside == []
    assert sorted(watcher.phones) == sorted(phones)


def test_a_request_whose_window_closes_before_it_is_sent_is_pending_again(tmp_path: Path) -> None:
    clock = Clock(at("2026-11-20T23:59:59"))
    path = create(tmp_path / "job", [COLOMBIAN.format(number) for number in range(5)], clock.now)
    watcher = Watcher(clock, 0)
    service = Service(otherwise=watcher)
    connect = service.connect
    ledger = opened(path)
    work = Runner(ledger, connect, clock=clock)
    perform = work._perform
    hits: list[int] = []

    def late(client: Any, intent: Any) -> Any:
        if not hits:
            hits.append(1)
            clock.now += 1.0  # 19:00 in Bogota, between the decision and the request
        return perform(client, intent)

    work._perform = late  # type: ignore[assignment, method-assign]
    work.start()
    while not work.wait(0.001):
        if work.waits_until is not None:
            clock.now = max(clock.now, work.waits_until)
    assert work.finish() is None
    assert watcher.outside == []
    assert outcomes(ledger) == {"accepted": 5}
    ledger.close()
