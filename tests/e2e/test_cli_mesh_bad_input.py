"""``backstop mesh`` over what nobody should trust: told in a line, and nothing is lost."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from backstop.clock import SystemClock
from backstop.core.canon import digest
from backstop.core.checkpoint import Checkpoint, Dep, DepKind
from backstop.mesh.judging import look
from backstop.wiring.stores import open_store
from tests.contract.bench import header
from tests.e2e.command import Ran, backstop
from tests.e2e.mesh.fleet import RUN, Fleet
from tests.e2e.mesh.rerunning import URL, opened
from tests.signed import key

SCOUT = "s0/scout#0"
HUGE = msgspec.json.encode({"parts": "x" * 50_000_000})


class Tomorrow:
    """A clock that is turned back after it wrote."""

    def now(self) -> datetime:
        return SystemClock().now() + timedelta(days=1)


@pytest.fixture
def fleet(tmp_path: Path) -> Fleet:
    made = opened(tmp_path)
    made.begins(act=False)
    made.anchors(tmp_path)
    return made


def mesh(folder: Path, *words: str) -> Ran:
    where = ("--store", URL.format(folder), "--agent", "clerk")
    return backstop("mesh", *words, *where, "--anchors", folder / "backstop-mesh.yaml")


def scout(fleet: Fleet, **about: Any) -> Checkpoint:
    """The scout's record, but for this."""
    made = look(fleet.store, fleet.mind, RUN).graph[SCOUT]
    return msgspec.structs.replace(made, **about)


@pytest.mark.parametrize(
    ("about", "state"),
    [
        ({"deps": (Dep(DepKind.UPSTREAM, "s0/nowhere", "d"),), "gen": 1}, "BLOCKED"),
        ({"deps": (Dep(DepKind.UPSTREAM, SCOUT, "d"),), "gen": 1}, "BLOCKED"),
        ({"schema": 99, "gen": 1}, "BLOCKED"),
        ({"output": "f" * 64}, "BLOCKED"),
        ({"output": digest(HUGE), "gen": 1}, "INVALIDATED"),
        ({"producer": "stranger", "gen": 1}, "INVALIDATED"),
    ],
    ids=["dangling", "cycle", "unknown schema", "two bodies", "50 MB", "stranger"],
)
def test_a_bad_record_is_told_and_nothing_that_rests_on_it_is_verified(
    tmp_path: Path, fleet: Fleet, about: dict[str, Any], state: str
) -> None:
    assert mesh(tmp_path, "status").code == 0  # the control: without it all holds
    fleet.payloads.put(digest(HUGE), HUGE)
    fleet.record(scout(fleet, **about))
    before = list(fleet.store.read())
    ran = mesh(tmp_path, "status")
    assert (ran.code, ran.err) == (1, "")
    told = {line.split()[1]: line.split()[0] for line in ran.out.splitlines() if " s0/" in line}
    assert told[SCOUT] == state
    assert told["s0/skeptic#0"] in {"RECOMPUTE", "BLOCKED"}
    assert mesh(tmp_path, "why", SCOUT).code == 1
    assert list(fleet.store.read()) == before


def test_a_clock_that_was_turned_back_blocks_everything(tmp_path: Path, fleet: Fleet) -> None:
    fleet.store = open_store(URL.format(tmp_path), header=header(), clock=Tomorrow())
    fleet.record(scout(fleet, gen=1))
    ran = mesh(tmp_path, "status")
    assert ran.code == 1
    assert "6 BLOCKED" in ran.out
    assert "clock" in mesh(tmp_path, "why", SCOUT).out


def pulled(folder: Path) -> Path:
    file = folder / "run.jsonl"
    where = ("ledger", "pull", URL.format(folder), "--agent", "clerk", "--out", file)
    assert backstop(*where).code == 0
    return file


@pytest.mark.usefixtures("fleet")
def test_a_missing_signature_a_forged_line_and_a_torn_end_are_refused(tmp_path: Path) -> None:
    file, keys = pulled(tmp_path), tmp_path / "keys"
    keys.write_text(f"{key(1).public}\n", encoding="utf-8")
    anchors = ("--anchors", tmp_path / "backstop-mesh.yaml")
    assert backstop("mesh", "status", file, *anchors).code == 0  # the control
    ran = backstop("mesh", "status", file, "--trusted-keys", keys, *anchors)
    assert (ran.code, ran.out) == (2, "")
    assert "sign" in ran.err
    whole = file.read_bytes()
    for bad in (whole.replace(b"s0/scout#0", b"s0/skout#0", 1), whole[:-20]):
        file.write_bytes(bad)
        ran = backstop("mesh", "status", file, *anchors)
        assert (ran.code, ran.out) == (2, "")
        assert ran.err.startswith("error[ledger-")
