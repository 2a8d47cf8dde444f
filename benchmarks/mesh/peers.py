"""The same fleet as others keep it: edges between numbers. A library is loaded when it is used."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from typing import Final

from benchmarks.mesh.fleet import STEPS, edges


class _Numbers:
    """Steps are numbers, in questions and in answers."""

    @staticmethod
    def key(step: int) -> int:
        """The step's own number."""
        return step

    @staticmethod
    def numbers(told: Iterable[int]) -> list[int]:
        """Numbers already."""
        return list(told)


class Networkx(_Numbers):
    """Dictionaries of dictionaries, in Python."""

    def __init__(self, runs: int) -> None:
        import networkx as nx

        self._nx = nx
        self._graph = nx.DiGraph()
        self._graph.add_nodes_from(range(runs * STEPS))
        self._graph.add_edges_from(edges(runs))

    def blast(self, step: int) -> set[int]:
        """The step and all that was made from it."""
        return self._nx.descendants(self._graph, step) | {step}

    def plan(self, step: int) -> list[int]:
        """The same, each after what it was made from."""
        return list(self._nx.topological_sort(self._graph.subgraph(self.blast(step))))


class Rustworkx(_Numbers):
    """Petgraph, in Rust."""

    def __init__(self, runs: int) -> None:
        import rustworkx as rx

        self._rx = rx
        self._graph = rx.PyDiGraph(multigraph=False)
        self._graph.add_nodes_from(range(runs * STEPS))
        self._graph.add_edges_from_no_data(list(edges(runs)))

    def blast(self, step: int) -> set[int]:
        """The step and all that was made from it."""
        return self._rx.descendants(self._graph, step) | {step}

    def plan(self, step: int) -> list[int]:
        """The same, each after what it was made from."""
        # Its own sort looks at the whole graph, and so does a part of it: 1e6 steps for these few.
        found = self.blast(step)
        above = self._graph.predecessor_indices
        waits = {one: len(found.intersection(above(one))) for one in found}
        order = [one for one, count in waits.items() if not count]
        for one in order:
            for below in self._graph.successor_indices(one):
                waits[below] -= 1
                if not waits[below]:
                    order.append(below)
        return order


class Sqlite(_Numbers):
    """A table of edges in memory, and a recursive query."""

    BLAST: Final = """
        WITH RECURSIVE d(x) AS (VALUES(?) UNION SELECT v FROM d JOIN edge ON u = x)
        SELECT x FROM d
    """
    PLAN: Final = (
        "WITH RECURSIVE d(x, depth) AS (VALUES(?, 0) UNION SELECT v, depth + 1 FROM d "
        "JOIN edge ON u = x) SELECT x FROM d GROUP BY x ORDER BY max(depth)"
    )

    def __init__(self, runs: int) -> None:
        self._db = sqlite3.connect(":memory:")
        self._db.execute("CREATE TABLE edge(u INTEGER, v INTEGER, PRIMARY KEY(u, v)) WITHOUT ROWID")
        self._db.executemany("INSERT INTO edge VALUES(?, ?)", edges(runs))

    def blast(self, step: int) -> list[tuple[int]]:
        """The step and all that was made from it."""
        return self._db.execute(self.BLAST, (step,)).fetchall()

    def plan(self, step: int) -> list[tuple[int]]:
        """The same, each after what it was made from."""
        return self._db.execute(self.PLAN, (step,)).fetchall()

    @staticmethod
    def numbers(told: Iterable[tuple[int]]) -> list[int]:
        """The only column."""
        return [number for (number,) in told]
