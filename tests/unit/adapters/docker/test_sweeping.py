"""Who may remove whose containers: nobody those of a live owner."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime, timedelta

import pytest

from backstop.adapters.docker.sweeping import OWNER, UNTIL, is_abandoned, ownership
from backstop.adapters.owners import this_process

NOW = datetime(2026, 1, 5, 9, tzinfo=UTC)
LATER = NOW + timedelta(days=30)
SAYS_ITS_NAME = "from backstop.adapters.owners import this_process; print(this_process())"
ELSEWHERE = "other-host/boot/1-1/12/3456"


def dead() -> str:
    """The name of a process that ended."""
    said = subprocess.run(
        [sys.executable, "-c", SAYS_ITS_NAME], check=True, capture_output=True, text=True
    )
    return said.stdout.strip()


def test_what_a_live_process_made_is_its_own_for_ever() -> None:
    labels = ownership(now=NOW, for_s=60)
    assert labels[OWNER] == this_process()
    assert not is_abandoned(labels, now=LATER)


def test_what_a_dead_process_made_is_abandoned_at_once() -> None:
    labels = {**ownership(now=NOW, for_s=60), OWNER: dead()}
    assert is_abandoned(labels, now=NOW)


def test_what_a_process_elsewhere_made_is_abandoned_once_its_time_is_over() -> None:
    labels = {**ownership(now=NOW, for_s=60), OWNER: ELSEWHERE}
    assert not is_abandoned(labels, now=NOW + timedelta(seconds=60))
    assert is_abandoned(labels, now=NOW + timedelta(minutes=10))


@pytest.mark.parametrize("until", ["", "soon", "-1", "1e9"])
def test_what_does_not_say_until_when_is_left_alone(until: str) -> None:
    assert not is_abandoned({OWNER: ELSEWHERE, UNTIL: until}, now=LATER)
    assert not is_abandoned({UNTIL: until}, now=LATER)
