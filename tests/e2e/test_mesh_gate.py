"""The effect gate on the real framework: what a judge withholds, no tool is asked for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from backstop.adapters.memory import MemoryStore
from backstop.core.effectgate import Place, Precondition, Reach, Unverified
from backstop.core.effecttrust import Act, Ruled, Trust
from backstop.core.events import AttemptEnded, CallAnswered, CursorAdvanced, EffectClaimed
from backstop.core.order import Order
from backstop.core.trustbreak import Steps, TrustBreak
from backstop.guard.calls import Call, name_call, produced
from backstop.guard.claims.capability import downstream_key, keyed
from backstop.guard.claims.safety import Safety
from backstop.ports import Held
from tests.e2e.test_plugin_refusals import Clock, Fixed, station
from tests.e2e.till import PAY, Till, calls, says, told

# The framework warns about its own experimental features.
pytestmark = pytest.mark.filterwarnings("ignore")


class Mesh:
    """A store, and a judge that says VERIFIED in the current epoch, unless told otherwise."""

    def __init__(self) -> None:
        self.store = MemoryStore(clock=Clock())
        self.verdict: Unverified | None = None
        self.judged: list[str] = []

    def judge(self, intent: EffectClaimed) -> Precondition | Unverified:
        self.judged.append(intent.tool)
        place = Place(run=intent.run, step="till/pay.0", agent="till")
        return self.verdict or Precondition(place=place, epoch=self.store.control().epoch)

    def breaks(self, run: str = "") -> None:
        found = TrustBreak(
            id=f"b{self.store.control().epoch}",
            seq=1,
            epoch=0,
            detector="evidence age",
            reason="the price list is stale",
            selector=Steps(steps=("till/look.0",)),
        )
        self.store.break_trust(found, run=run, reach=[Reach(run=run, everything=True)])

    def recovers(self, *ruled: Ruled, run: str = "") -> None:
        lease = self.store.lease(run, "worker", lease_s=30)
        assert not isinstance(lease, Held)
        self.store.rule(ruled, lease=lease)
        whole = [Reach(run=run, everything=True)]
        assert self.store.thaw(whole, lease=lease, epoch=self.store.control().epoch)

    def plugin(self, **said: Any) -> Fixed:
        return Fixed(station(self.store, judge=self, **said))

    def kinds(self, kind: type) -> list[Any]:
        return [event for event in self.store.read() if isinstance(event, kind)]


@pytest.fixture
def till(tmp_path: Path) -> Till:
    return Till(folder=tmp_path)


LOOK = calls(("look", {"order": "7"}))


def test_a_verified_effect_goes_out_and_a_read_is_not_judged(till: Till) -> None:
    mesh = Mesh()
    events = till.chat(till.agent(LOOK, PAY, says("done")), "pay", plugins=[mesh.plugin()])
    assert told(events, "pay") == [{"paid": "7", "amount": 10}]
    assert mesh.judged == ["pay"]
    assert [one.trust for one in mesh.store.out()] == [Trust.CLEAN]
    assert mesh.kinds(CursorAdvanced)


@pytest.mark.parametrize("kind", ["unverified", "frozen"])
def test_what_is_withheld_is_told_and_holds_the_cursor(till: Till, kind: str) -> None:
    mesh = Mesh()
    if kind == "frozen":
        mesh.breaks()
    else:
        mesh.verdict = Unverified(state="BLOCKED", reason="stale", culprit="scout/history.0")
    events = till.chat(till.agent(LOOK, PAY, says("hm")), "pay", plugins=[mesh.plugin()])
    assert till.sent == []
    (answer,) = told(events, "pay")
    assert answer["backstop"] == kind
    assert "stale" in answer["reason"]
    assert [event.how for event in mesh.kinds(CallAnswered)] == ["withheld"]
    assert mesh.kinds(CursorAdvanced) == []
    assert [event.outcome for event in mesh.kinds(AttemptEnded)] == ["held"]
    order = Order()
    assert [wrong for event in mesh.store.read() if (wrong := order.check(event))] == []


def test_the_action_resumes_once_its_branch_was_recovered(till: Till) -> None:
    mesh = Mesh()
    mesh.breaks()
    root = till.agent(PAY, says("hm"), PAY, says("done"))
    events = till.chat(root, "pay", "pay now", plugins=[mesh.plugin()])
    assert till.sent == []
    assert {answer["backstop"] for answer in told(events, "pay")} == {"frozen"}
    mesh.recovers()
    other = Till(folder=till.folder, sent=till.sent)
    events = other.chat(other.agent(PAY, says("done")), "pay", plugins=[mesh.plugin()])
    assert told(events, "pay") == [{"paid": "7", "amount": 10}]
    assert till.sent == [("7", 10)]


def test_what_only_observes_lets_a_withheld_effect_through_and_says_so(
    till: Till, caplog: pytest.LogCaptureFixture
) -> None:
    mesh = Mesh()
    mesh.breaks()
    till.chat(till.agent(PAY, says("x")), "pay", plugins=[mesh.plugin(observing=True)])
    assert till.sent == [("7", 10)]
    assert [event.how for event in mesh.kinds(CallAnswered)] == ["observed_withheld"]
    assert "withheld" in caplog.text


def test_a_provider_is_handed_another_key_for_what_is_done_anew_after_it_was_taken_back() -> None:
    """With the first key it would answer as it did, and nothing would go out: a silent skip."""
    mesh, seen = Mesh(), list[str]()
    safety = {"pay": Safety(capability=keyed("key", retention="24h"))}
    made = station(mesh.store, judge=mesh, safety=safety)

    def pay(key: str) -> dict[str, str]:
        seen.append(key)
        return {"paid": "7"}

    def pays(cursor: int) -> None:
        attempt = made.journal.begin("r1", cursor=cursor, trigger="tick", message={}, state={})
        call = name_call(
            "pay",
            {"order": "7"},
            made.declaration_of("pay"),
            attempt=attempt,
            namespace=made.journal.namespace,
        )
        assert isinstance(call, Call)
        made.serve_now(
            call,
            pay,
            lambda result: produced(result, {}, tool="pay"),
            arguments={"order": "7"},
        )

    pays(0)
    (claimed,) = mesh.kinds(EffectClaimed)
    mesh.breaks(run="r1")
    mesh.recovers(Ruled(key=claimed.key, act=Act.COMPENSATE, note="undo-key"), run="r1")
    pays(1)
    pays(2)
    _, again = mesh.kinds(EffectClaimed)
    assert again.key == claimed.key
    assert seen == [claimed.key, downstream_key(again)]
    assert seen[0] != seen[1]
