"""After a power cut, synced data remains, and no recipient is lost or sent to twice. Needs strace."""

from __future__ import annotations

import pytest

from faults.power import build
from support.programs import program


def test_a_power_cut_loses_no_recipient_and_sends_to_no_one_twice() -> None:
    program("strace")
    assert build(40, "suite") == ""


@pytest.mark.slow
def test_a_store_that_does_not_sync_is_detected() -> None:
    program("strace")
    assert any(build(100, f"broken-{number}", without_sync=True) for number in range(5))
