"""What tests do to the effect gate of a store: claim, publish, and rule about what is out."""

from __future__ import annotations

import msgspec

from backstop.core.effectgate import (
    Precondition,
)
from backstop.core.effecttrust import Act, Ruled
from backstop.ports import Answer, Claim, Recorded
from tests.contract.bench import Bench
from tests.contract.deeds import committed, pay
from tests.contract.meshed import (
    judged,
    leased,
)

PAID = Recorded(result=msgspec.Raw(b'"paid"'), state_delta=msgspec.Raw(b'{"paid":1}'))


def claims(
    bench: Bench, asked: Precondition, owner: str = "alice", *, fingerprint: str = "f1"
) -> Claim | Answer:
    return bench.store.claim(pay(owner, fingerprint=fingerprint), asked)


def executes(bench: Bench, asked: Precondition, owner: str = "alice") -> Claim:
    claim = claims(bench, asked, owner)
    assert isinstance(claim, Claim)
    return claim


def publishes(bench: Bench, asked: Precondition | None = None) -> Claim:
    """The effect is claimed and committed."""
    claim = executes(bench, asked or judged())
    bench.store.settle(committed(claim), claim=claim)
    return claim


def rule(bench: Bench, act: Act, note: str = "", *, lease: bool = True) -> None:
    ruled = [Ruled(key="k1", act=act, note=note)]
    bench.store.rule(ruled, lease=leased(bench.store) if lease else None)
