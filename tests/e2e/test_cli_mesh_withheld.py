"""``backstop mesh`` where all holds and an action that was withheld is still not out."""

from __future__ import annotations

from pathlib import Path

import pytest

from backstop.core.checkpoint import StepKind
from tests.e2e.command import in_a_process
from tests.e2e.mesh.fleet import ACTION, Fleet
from tests.e2e.mesh.rerunning import opened
from tests.e2e.test_cli_mesh import WIDE, document, mesh, options


@pytest.fixture
def fleet(tmp_path: Path) -> Fleet:
    made = opened(tmp_path)
    made.begins(act=False)
    response = {"response": {"backstop": "unverified", "reason": "stale"}}
    left = {"parts": [{"digest": "d", "form": {"function_response": response}}]}
    made.keep(ACTION, StepKind.EFFECT, left, [], rerunnable=False)
    made.anchors(tmp_path)
    return made


def test_it_is_no_run_in_which_nothing_is_to_be_done(fleet: Fleet, tmp_path: Path) -> None:
    assert set(fleet.states().values()) == {"V"}
    ran = mesh(tmp_path, "status")
    assert ran.code == 1
    assert f"not out, may be asked for again: {ACTION}" in ran.out
    assert all(len(line) <= WIDE for line in ran.out.splitlines() if line.startswith("  "))
    assert document(tmp_path, "status")["runs"][0]["due"] == [ACTION]
    ran = mesh(tmp_path, "plan")
    assert ran.code == 1
    assert "asked for again: 1" in ran.out
    ran = mesh(tmp_path, "apply")
    assert ran.code == 1
    assert "may go out again, and nobody here can ask for it" in " ".join(ran.out.split())
    ran = in_a_process(
        *("mesh", "apply", "--with", "tests.e2e.mesh.rerunning:fleet"),
        *options(tmp_path),
        FLEET=str(tmp_path),
    )
    assert ran.code == 0, ran.err
    assert mesh(tmp_path, "status").code == 0
    assert [one.gated.place.step for one in fleet.store.out()] == [ACTION]
