"""The guard with anchors: on the real framework, no effect goes out whose step is not VERIFIED."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from backstop.core.checkpoint import DepKind
from backstop.mesh.definitions import definitions_of
from backstop.wiring.mesh import anchors_text
from tests.e2e.command import backstop
from tests.e2e.test_mesh_with_guard import recorded
from tests.e2e.till import PAY, Till, calls, says, told

# The framework warns about its own experimental features.
pytestmark = pytest.mark.filterwarnings("ignore")

LOOK = calls(("look", {"order": "7"}))
PAY2 = calls(("pay", {"order": "8", "amount": 11}))


@pytest.fixture
def till(tmp_path: Path) -> Till:
    return Till(folder=tmp_path)


def anchors(till: Till, root: Any, *producers: str, **changed: str) -> Path:
    """The anchors of what the agent is today, with some code digests changed."""
    pins = dict(asyncio.run(definitions_of(root)))
    for tool, pinned in changed.items():
        pins[DepKind.CODE, f"tool:{tool}"] = pinned
    file = till.folder / "backstop-mesh.yaml"
    text = anchors_text(pins, producers=producers or ("recorder",), payloads="payloads")
    file.write_text(text, encoding="utf-8")
    return file


def chats(till: Till, root: Any, mesh: Path) -> list[Any]:
    return till.chat(root, "pay", plugins=[recorded(till), till.plugin(mesh=mesh)])


def test_an_effect_on_verified_ground_goes_out_and_the_run_is_verified(till: Till) -> None:
    root = till.agent(LOOK, PAY, says("done"))
    mesh = anchors(till, root)
    events = chats(till, root, mesh)
    assert told(events, "pay") == [{"paid": "7", "amount": 10}]
    url = f"sqlite:///{till.folder}/guard.db"
    ran = backstop("mesh", "status", "--store", url, "--agent", "till", "--anchors", mesh)
    assert (ran.code, ran.err) == (0, "")
    assert "6 VERIFIED" in ran.out


@pytest.mark.parametrize("bad", ["producer", "code"])
def test_an_effect_on_other_ground_is_withheld(till: Till, bad: str) -> None:
    root = till.agent(LOOK, PAY, says("hm"))
    mesh = (
        anchors(till, root, "another") if bad == "producer" else anchors(till, root, pay="0" * 64)
    )
    events = chats(till, root, mesh)
    (answer,) = told(events, "pay")
    assert answer["backstop"] == "unverified"
    assert till.sent == []


def test_a_poisoned_result_freezes_what_was_made_from_it(till: Till) -> None:
    root = till.agent(LOOK, says("there"), PAY, says("hm"))
    mesh = anchors(till, root)
    url = f"sqlite:///{till.folder}/guard.db"
    options = ("--store", url, "--agent", "till", "--anchors", mesh)

    async def go() -> list[Any]:
        await till.session()
        runner = till.runner(root, plugins=[recorded(till), till.plugin(mesh=mesh)])
        await till.say(runner, "look")
        ran = await asyncio.to_thread(
            backstop,
            *("mesh", "break", "--step", "s0/till#0/look", "--reason", "poisoned", *options),
        )
        assert ran.code == 0, ran.err
        events = await till.say(runner, "pay")
        await runner.close()
        return events

    events = asyncio.run(go())
    (answer,) = told(events, "pay")
    assert answer["backstop"] == "unverified"
    assert "look" in answer["reason"]
    assert till.sent == []
    ran = backstop("mesh", "why", "s1/till#0/pay", *options)
    assert (ran.code, "culprit: s0/till#0/look" in ran.out) == (1, True)


def test_a_guard_whose_anchors_are_missing_refuses_effects(till: Till) -> None:
    root = till.agent(PAY, says("hm"))
    events = chats(till, root, till.folder / "nowhere.yaml")
    assert till.sent == []
    assert "nowhere.yaml" in str(told(events, "pay"))


@pytest.mark.parametrize("change", ["stricter", "broken", "gone"])
def test_m44_what_the_anchors_say_holds_at_once(till: Till, change: str) -> None:
    """M44: a rule that is edited in flight counts, and one that cannot be read lets nothing out."""
    root = till.agent(PAY, says("done"), PAY2, says("hm"))
    mesh = anchors(till, root)
    good = mesh.read_text()
    changed = anchors(till, root, pay="0" * 64).read_text() if change == "stricter" else "{"

    mesh.write_text(good)

    async def go() -> list[Any]:
        await till.session()
        runner = till.runner(root, plugins=[recorded(till), till.plugin(mesh=mesh)])
        await till.say(runner, "pay")
        assert till.sent == [("7", 10)]
        if change == "gone":
            mesh.unlink()
        else:
            mesh.write_text(changed)
        events = await till.say(runner, "pay another")
        await runner.close()
        return events

    events = asyncio.run(go())
    assert till.sent == [("7", 10)]
    (answer,) = told(events, "pay")
    assert answer["backstop"] in {"unverified", "refused"}


@pytest.mark.parametrize(
    ("name", "shape", "sent"),
    [
        ("look", {"type": "object", "required": ["order"]}, 1),
        ("look", {"type": "object", "required": ["price"]}, 0),
        ("till", {"type": "string"}, 1),
        ("till", {"type": "object"}, 1),
    ],
)
def test_m25_an_output_without_its_form_lets_nothing_out(
    till: Till, name: str, shape: dict[str, object], sent: int
) -> None:
    """M25: malformed output is a break where it is written, not where it is missed."""
    root = till.agent(LOOK, PAY, says("done"))
    mesh = anchors(till, root)
    text = json.loads(mesh.read_text().partition("\n")[2])
    mesh.write_text(json.dumps({**text, "outputs": {name: shape}}))
    chats(till, root, mesh)
    assert len(till.sent) == sent
    url = f"sqlite:///{till.folder}/guard.db"
    ran = backstop("mesh", "plan", "--store", url, "--agent", "till", "--anchors", mesh)
    wrong = name == "look" and not sent
    assert ("to be broken first: output schema: s0/till#0/look" in ran.out) is wrong
    # What the model said at the end is no object: found after the fact, and told.
    last = shape == {"type": "object"}
    assert ("to be broken first: output schema: s0/till#2" in ran.out) is last
