"""The current checkpoint of every step of a run, and who was made from whom.

A dictionary of nodes that know who was made from them; from whom they were made, their records
say. Steps mostly arrive after what they were made from, and then the order of arrival is an
order in which they can be judged; it is worked out anew only where that does not hold.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from backstop.core.checkpoint import Checkpoint, DepKind
from backstop.core.trustbreak import Steps, TrustBreak

UNPLACED: Final = -1
_UPSTREAM: Final = DepKind.UPSTREAM


class Node:
    """A step: its current record, who was made from it, and its place in the order of judging.

    `checkpoint` is None for a step that is only spoken of. `conflict` says that two bodies
    came under one name and attempt, `unsteady` that what the record read had changed meanwhile.
    """

    __slots__ = ("below", "checkpoint", "conflict", "index", "place", "step", "unsteady")

    def __init__(self, step: str, index: int) -> None:
        self.step = step
        self.index = index
        self.place = UNPLACED
        self.checkpoint: Checkpoint | None = None
        self.conflict = False
        self.unsteady = False
        self.below: list[Node] = []


class TrustGraph:
    """The checkpoints of one run. Grows and never forgets a step."""

    __slots__ = ("_cyclic", "_nodes", "_order", "_ordered")

    def __init__(self) -> None:
        self._nodes: dict[str, Node] = {}
        self._order: list[Node] = []
        self._cyclic: Sequence[Node] = ()
        self._ordered = True

    def put(self, checkpoint: Checkpoint) -> bool:
        """Take a record in; does it change what is current?

        A record that is delivered again changes nothing, nor does one of an older attempt. Of
        two bodies under one name and attempt neither counts, in whatever order they come.
        """
        node = self._node(checkpoint.step)
        known = node.checkpoint
        if known is not None and checkpoint.gen < known.gen:
            return False
        if known is not None and checkpoint.gen == known.gen:
            return not _same(known, checkpoint) and self._conflict(node, known, checkpoint)
        node.conflict = False
        self._set(node, checkpoint)
        return True

    def _conflict(self, node: Node, known: Checkpoint, other: Checkpoint) -> bool:
        """Two bodies under one name: which one is spoken of does not depend on what came first."""
        first = min(known, other, key=lambda one: one.id)
        changed = not node.conflict or first is not known
        node.conflict = True
        if first is not known:
            self._set(node, first)
        return changed

    def __len__(self) -> int:
        return sum(node.checkpoint is not None for node in self._nodes.values())

    def __contains__(self, step: object) -> bool:
        node = self._nodes.get(step) if isinstance(step, str) else None
        return node is not None and node.checkpoint is not None

    def __getitem__(self, step: str) -> Checkpoint:
        """The current record of a step. Raises `KeyError`."""
        checkpoint = self._nodes[step].checkpoint
        if checkpoint is None:
            raise KeyError(step)
        return checkpoint

    def __iter__(self) -> Iterator[str]:
        return (step for step, node in self._nodes.items() if node.checkpoint is not None)

    @property
    def size(self) -> int:
        """How many nodes there are, those only spoken of included: indexes lie below it."""
        return len(self._nodes)

    @property
    def nodes(self) -> Mapping[str, Node]:
        """The nodes of all steps that are recorded or spoken of."""
        return self._nodes

    def order(self) -> tuple[Sequence[Node], Sequence[Node]]:
        """The recorded steps, each after what it was made from; and those in or behind a cycle."""
        if not self._ordered:
            self._sort()
        return self._order, self._cyclic

    def blast(self, roots: Iterable[str]) -> set[str]:
        """The roots and all that was made from them, directly or not: what to freeze."""
        reached = [self._nodes[step] for step in roots if step in self._nodes]
        seen = {node.step for node in reached}
        for node in reached:  # which grows meanwhile
            for below in node.below:
                step = below.step
                if step not in seen:
                    seen.add(step)
                    reached.append(below)
        return seen

    def selected(self, broken: TrustBreak) -> set[str]:
        """The steps whose current record a trust break names."""
        selector = broken.selector
        named = selector.steps if isinstance(selector, Steps) else self._nodes
        return {step for step in named if step in self and broken.covers(self[step])}

    def _node(self, step: str) -> Node:
        node = self._nodes.get(step)
        if node is None:
            node = self._nodes[step] = Node(step, len(self._nodes))
        return node

    def _set(self, node: Node, checkpoint: Checkpoint) -> None:
        known = node.checkpoint
        before = set() if known is None else set(_refs(known))
        refs = _refs(checkpoint)
        node.checkpoint = checkpoint
        node.unsteady = checkpoint.unsteady is not None
        for ref in before.difference(refs):
            self._nodes[ref].below.remove(node)
        for ref in refs:
            if ref not in before:
                self._node(ref).below.append(node)
        self._place(node, refs)

    def _place(self, node: Node, refs: Iterable[str]) -> None:
        """Keep the order if the node fits at its place, or at the end."""
        if not self._ordered:
            return
        if node.place == UNPLACED:
            if node.below:
                self._ordered = False  # spoken of before it came, perhaps by itself
                return
            node.place = len(self._order)
            self._order.append(node)
        elif any(self._nodes[ref].place >= node.place for ref in refs):
            self._ordered = False

    def _sort(self) -> None:
        """Kahn's algorithm; what never becomes free stands in a cycle or behind one."""
        recorded = {n.step: n.checkpoint for n in self._nodes.values() if n.checkpoint is not None}
        waits = {
            step: sum(ref in recorded for ref in _refs(checkpoint))
            for step, checkpoint in recorded.items()
        }
        free = deque(self._nodes[step] for step, count in waits.items() if not count)
        order: list[Node] = []
        while free:
            node = free.popleft()
            node.place = len(order)
            order.append(node)
            for below in node.below:
                waits[below.step] -= 1
                if not waits[below.step]:
                    free.append(below)
        self._order = order
        self._cyclic = [self._nodes[step] for step, count in waits.items() if count]
        for node in self._cyclic:
            node.place = UNPLACED
        # With a cycle the next record may free it: the order is sought anew then.
        self._ordered = not self._cyclic


def _same(one: Checkpoint, other: Checkpoint) -> bool:
    return one == other or one.id == other.id


def _refs(checkpoint: Checkpoint) -> list[str]:
    """The steps that a record was made from, each once; in one order, whatever the record's."""
    return sorted({dep.ref for dep in checkpoint.deps if dep.kind is _UPSTREAM})
