"""What finds by itself that trust broke: one detector for each way in which a record goes bad.

Each reads the verdicts, which no model and no store can change, and names exact steps: a later
attempt at them is not meant. A person is the other detector.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from backstop.core.canon import canonical, digest
from backstop.core.checkpoint import DepKind
from backstop.core.trust import Reason, Verdict
from backstop.core.trustbreak import Steps, TrustBreak
from backstop.core.trustverdicts import Verdicts

EVIDENCE_AGE: Final = "evidence age"
TOOL_SCHEMA: Final = "tool schema"
POLICY_RULE: Final = "policy rule"
OUTPUT_SCHEMA: Final = "output schema"
REVOKED_DIGEST: Final = "revoked digest"
REVOKED_PRODUCER: Final = "revoked producer"
UNSTEADY: Final = "unsteady read"
PERSON: Final = "person"
"""Begins the name of a detector that is a person: ``person:ada``."""

_BY_REASON: Final[Mapping[Reason, tuple[str, str]]] = {
    Reason.STALE: (EVIDENCE_AGE, "what was seen is older than it may be"),
    Reason.POLICY_STALE: (POLICY_RULE, "a rule that judged it is another today"),
    Reason.OUTPUT_SCHEMA: (OUTPUT_SCHEMA, "the output has not the form that it must have"),
    Reason.REVOKED: (REVOKED_DIGEST, "it read, or left, bytes that are revoked"),
    Reason.REVOKED_KEY: (REVOKED_PRODUCER, "who vouches for it is revoked"),
    Reason.UNSTEADY_READ: (UNSTEADY, "an input changed while it was read"),
}
_TOOL: Final = (TOOL_SCHEMA, "a tool that it was offered is declared otherwise today")


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """What one detector found in a run: steps, in order, and the digest of what shows it."""

    detector: str
    reason: str
    steps: tuple[str, ...]
    proof: str

    def broken(self, run: str) -> TrustBreak:
        """The break that it is. Found again in the same records, it is the same break."""
        name = digest(canonical([run, self.detector, self.proof]))[:16]
        return TrustBreak(
            id=f"{self.detector.replace(' ', '-')}:{name}",
            seq=0,
            epoch=0,
            detector=self.detector,
            reason=self.reason,
            selector=Steps(steps=self.steps),
            proof=self.proof,
        )


def detect(verdicts: Verdicts) -> tuple[Finding, ...]:
    """What the detectors find, in order of their names. What a break names already is no finding.

    Only what a recovery can mend is found: a step that is BLOCKED by itself waits for a person.
    """
    found: dict[tuple[str, str], list[str]] = {}
    order, _ = verdicts.graph.order()
    for node in order:
        by = _detector(verdicts, node.step, verdicts[node.step])
        if by is not None:
            found.setdefault(by, []).append(node.step)
    return tuple(
        Finding(
            detector=detector,
            reason=reason,
            steps=tuple(steps),
            proof=digest(canonical([verdicts.graph[step].id for step in steps])),
        )
        for (detector, reason), steps in sorted(found.items())
    )


def _detector(verdicts: Verdicts, step: str, verdict: Verdict) -> tuple[str, str] | None:
    if verdict.reason is not Reason.PIN:
        return _BY_REASON.get(verdict.reason) if verdict.own else None
    pins = verdicts.world.pins
    moved = any(
        dep.kind is DepKind.TOOL and pins.get((dep.kind, dep.ref), dep.digest) != dep.digest
        for dep in verdicts.graph[step].outside
    )
    return _TOOL if moved else None
