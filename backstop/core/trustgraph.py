"""The current checkpoint of every step of a run, and who was made from whom.

A dictionary of nodes that know their neighbours. Steps mostly arrive after what they were
made from, and then the order of arrival is an order in which they can be judged; it is worked
out anew only where that does not hold.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Final

from backstop.core.checkpoint import Checkpoint, Dep, DepKind
from backstop.core.trustbreak import Inputs, Selector, Steps, TrustBreak

UNPLACED: Final = -1


class Outside:
    """What records say of the world beyond the mesh, once for all that say the same."""

    __slots__ = ("deps", "index", "nodes", "producer", "schema")

    def __init__(self, index: int, schema: int, producer: str, deps: tuple[Dep, ...]) -> None:
        self.index = index
        self.schema = schema
        self.producer = producer
        self.deps = deps
        self.nodes: dict[str, Node] = {}


class Node:
    """A step: its current record, its neighbours, and its place in the order of judging.

    `checkpoint` is None for a step that is only spoken of. `conflict` says that two bodies
    came under one name and attempt. `above` are the steps it was made from, each with the
    digest that was read, in order of their names.
    """

    __slots__ = ("above", "below", "checkpoint", "conflict", "index", "outside", "place", "step")

    def __init__(self, step: str, index: int) -> None:
        self.step = step
        self.index = index
        self.place = UNPLACED
        self.checkpoint: Checkpoint | None = None
        self.conflict = False
        self.outside: Outside | None = None
        self.above: tuple[tuple[Node, str], ...] = ()
        self.below: dict[str, Node] = {}


class TrustGraph:
    """The checkpoints of one run. Grows and never forgets a step."""

    def __init__(self) -> None:
        self.outsides: list[Outside] = []
        self._by_content: dict[tuple[int, str, tuple[Dep, ...]], Outside] = {}
        self._nodes: dict[str, Node] = {}
        self._order: list[Node] = []
        self._cyclic: list[Node] = []
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

    def node(self, step: str) -> Node:
        """The node of a step that is recorded or spoken of. Raises `KeyError`."""
        return self._nodes[step]

    def order(self) -> tuple[list[Node], list[Node]]:
        """The recorded steps, each after what it was made from; and those in or behind a cycle."""
        if not self._ordered:
            self._sort()
        return self._order, self._cyclic

    def blast(self, roots: Iterable[str]) -> set[str]:
        """The roots and all that was made from them, directly or not: what to freeze."""
        waiting = [self._nodes[step] for step in roots if step in self._nodes]
        seen = {node.step for node in waiting}
        while waiting:
            for step, node in waiting.pop().below.items():
                if step not in seen:
                    seen.add(step)
                    waiting.append(node)
        return seen

    def selected(self, broken: TrustBreak) -> set[str]:
        """The steps whose current record a trust break names."""
        return {
            node.step
            for node in self._meant(broken.selector)
            if node.checkpoint is not None and broken.covers(node.checkpoint)
        }

    def _meant(self, selector: Selector) -> Iterator[Node]:
        if isinstance(selector, Steps):
            yield from (self._nodes[step] for step in selector.steps if step in self._nodes)
            return
        for outside in self.outsides:
            if (
                any(selector.names(dep) for dep in outside.deps)
                if isinstance(selector, Inputs)
                else outside.producer == selector.producer
            ):
                yield from outside.nodes.values()

    def _node(self, step: str) -> Node:
        node = self._nodes.get(step)
        if node is None:
            node = self._nodes[step] = Node(step, len(self._nodes))
        return node

    def _set(self, node: Node, checkpoint: Checkpoint) -> None:
        for above, _ in node.above:
            above.below.pop(node.step, None)
        if node.outside is not None:
            del node.outside.nodes[node.step]
        node.checkpoint = checkpoint
        outside = self._outside(checkpoint)
        outside.nodes[node.step] = node
        node.outside = outside
        node.above = tuple((self._node(ref), read) for ref, read in _read_upstream(checkpoint))
        for above, _ in node.above:
            above.below[node.step] = node
        self._place(node)

    def _outside(self, checkpoint: Checkpoint) -> Outside:
        content = checkpoint.schema, checkpoint.producer, checkpoint.outside
        outside = self._by_content.get(content)
        if outside is None:
            outside = self._by_content[content] = Outside(len(self.outsides), *content)
            self.outsides.append(outside)
        return outside

    def _place(self, node: Node) -> None:
        """Keep the order if the node fits at its place, or at the end."""
        if not self._ordered:
            return
        if node.place == UNPLACED:
            if node.below:
                self._ordered = False  # spoken of before it came, perhaps by itself
                return
            node.place = len(self._order)
            self._order.append(node)
        elif any(
            above.place >= node.place for above, _ in node.above if above.checkpoint is not None
        ):
            self._ordered = False

    def _sort(self) -> None:
        """Kahn's algorithm; what never becomes free stands in a cycle or behind one."""
        recorded = [node for node in self._nodes.values() if node.checkpoint is not None]
        waits = {
            node.step: sum(above.checkpoint is not None for above, _ in node.above)
            for node in recorded
        }
        free = deque(node for node in recorded if not waits[node.step])
        order: list[Node] = []
        while free:
            node = free.popleft()
            node.place = len(order)
            order.append(node)
            for below in node.below.values():
                waits[below.step] -= 1
                if not waits[below.step]:
                    free.append(below)
        self._order = order
        self._cyclic = [node for node in recorded if waits[node.step]]
        for node in self._cyclic:
            node.place = UNPLACED
        # With a cycle the next record may free it: the order is sought anew then.
        self._ordered = not self._cyclic


def _same(one: Checkpoint, other: Checkpoint) -> bool:
    return one == other or one.id == other.id


def _read_upstream(checkpoint: Checkpoint) -> list[tuple[str, str]]:
    """Steps read and what was read of them; of a step read twice, both."""
    return sorted(
        {(dep.ref, dep.digest) for dep in checkpoint.deps if dep.kind is DepKind.UPSTREAM}
    )
