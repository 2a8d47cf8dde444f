"""The hammer, short: kill -9 and SIGSTOP at every point of the protocol, counted from outside."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.e2e.command import ROOT
from tests.emulators import firestore

NOTHING = "duplicates 0, silent skips 0, unfinished keys 0"


def hammered(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "benchmarks.hammer", *arguments],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=os.environ | environment,
        check=False,
        timeout=300,
    )


def test_no_effect_goes_out_twice_or_is_skipped_under_the_hammer() -> None:
    ran = hammered("short", "--store", "sqlite")
    assert (ran.returncode, ran.stdout.splitlines()[-1]) == (0, NOTHING), ran.stdout + ran.stderr
    assert ran.stdout.count("ok   ") == len(("none", "probe", "keyed")) * len(("seen", "hidden"))


@pytest.mark.emulator
def test_no_effect_goes_out_twice_or_is_skipped_under_the_hammer_on_firestore() -> None:
    ran = hammered("short", "--store", "firestore", FIRESTORE_EMULATOR_HOST=firestore())
    assert (ran.returncode, ran.stdout.splitlines()[-1]) == (0, NOTHING), ran.stdout + ran.stderr


def test_the_hammer_finds_out_whoever_looks_runs_and_records() -> None:
    """The control: what it cannot find proves nothing."""
    ran = hammered("naive")
    *_, last = ran.stdout.splitlines()
    assert ran.returncode == 1
    assert last.startswith("duplicates ")
    assert last.split()[1] != "0,"
