"""Trust breaks: what somebody found to be bad, and whose checkpoints that names.

A break is kept for good before anything is planned. It names records by what they are, say or
read, never by what their text looks like: content alone is no verdict (M38, M40).
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from backstop.core.checkpoint import Checkpoint, Dep, DepKind


class Steps(msgspec.Struct, frozen=True, kw_only=True, tag="steps"):
    """These steps, as they were recorded before the break; a later attempt is not meant."""

    steps: tuple[str, ...]


class Inputs(msgspec.Struct, frozen=True, kw_only=True, tag="inputs"):
    """Whatever read this input: any bytes of it before the break, or these bytes at any time.

    Bytes that are known to be bad stay bad: a step that reads them again is named as well.
    """

    kind: DepKind
    ref: str
    digest: str | None = None

    def names(self, dep: Dep) -> bool:
        """Is this the input that is meant?"""
        return (dep.kind, dep.ref) == (self.kind, self.ref) and self.digest in {None, dep.digest}


class Producer(msgspec.Struct, frozen=True, kw_only=True, tag="producer"):
    """Whatever a recorder vouched for between two places in the log, both included."""

    producer: str
    first: int = 0
    last: int


Selector: TypeAlias = Steps | Inputs | Producer


class TrustBreak(msgspec.Struct, frozen=True, kw_only=True):
    """Something turned out to be bad.

    `seq` is the break's place in the log, `epoch` the epoch that it began. `detector` is who
    found it (a rule's name, or a person), `reason` what was found, in words, and `proof` the
    digest of the bytes that show it.
    """

    id: str
    seq: int
    epoch: int
    detector: str
    reason: str
    selector: Selector
    proof: str = ""

    def covers(self, checkpoint: Checkpoint) -> bool:
        """Does the break name this record?"""
        before = checkpoint.seq < self.seq
        selector = self.selector
        if isinstance(selector, Steps):
            return before and checkpoint.step in selector.steps
        if isinstance(selector, Inputs):
            if not before and selector.digest is None:
                return False
            return any(selector.names(dep) for dep in checkpoint.deps if dep.ref == selector.ref)
        told = selector.first <= checkpoint.seq <= selector.last
        return told and checkpoint.producer == selector.producer
