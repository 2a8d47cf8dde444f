"""What the effect gate costs: a claim and its commit with and without a precondition, by store.

    python -m benchmarks.mesh.bench_gate [CALLS]

Fresh calls, told outcomes, and refusals, side by side in one process; medians of one thread.
Firestore is its emulator, where there is one.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from time import perf_counter
from typing import Final

import msgspec

from backstop.adapters.emulators import emulators_missing, firestore_emulator
from backstop.adapters.memory import MemoryStore
from backstop.adapters.sqlite.store import SqliteStore
from backstop.clock import SystemClock
from backstop.core.canon import CANON_VERSION
from backstop.core.effectgate import Place, Precondition, Reach
from backstop.core.events import FORMAT, EffectClaimed, EffectCommitted, Header
from backstop.core.trustbreak import Steps, TrustBreak
from backstop.meshports import MeshStore
from backstop.ports import Claim

CALLS: Final = 300
HEADER: Final = Header(format=FORMAT, agent="clerk", canon=CANON_VERSION, guarded=True)
RESULT: Final = msgspec.Raw(b'{"ok":true}')
FROZEN: Final = frozenset(f"agent/step.{number}" for number in range(1000))
"""Of another run: what a large break leaves in the control state that every claim looks at."""


def intent(key: str, number: int) -> EffectClaimed:
    """A call with a kilobyte of arguments."""
    return EffectClaimed(
        run=f"r{number % 10}",
        at="",
        step="s0",
        tool="pay",
        key=f"{key}-{number}",
        fingerprint="f",
        args=msgspec.Raw(msgspec.json.encode({"text": "x" * 1000})),
        owner="w/s0.1",
    )


def asked(number: int, *, epoch: int, frozen: bool = False) -> Precondition:
    """What a VERIFIED verdict asks for."""
    step = "agent/step.1" if frozen else "publish"
    return Precondition(place=Place(run=f"r{number % 10}", step=step), epoch=epoch, horizon=4e9)


def fresh(store: MeshStore, key: str, number: int, precondition: Precondition | None) -> None:
    """A call that runs."""
    claim = store.claim(intent(key, number), precondition)
    if not isinstance(claim, Claim):
        raise SystemExit(f"it was to run, and did not: {claim}")
    done = EffectCommitted(run=claim.run, at="", key=claim.key, fence=claim.fence, result=RESULT)
    store.settle(done, claim=claim)


def told(store: MeshStore, key: str, number: int, precondition: Precondition | None) -> None:
    """A call that does not run."""
    answer = store.claim(intent(key, number), precondition)
    if isinstance(answer, Claim):
        raise SystemExit("it was not to run, and did")


def timed(calls: int, *acts: Callable[[int], None]) -> list[float]:
    """The median of a call of each, in milliseconds; they take turns, whatever else goes on."""
    spent: list[list[float]] = [[] for _ in acts]
    for number in range(calls):
        for act, times in zip(acts, spent, strict=True):
            start = perf_counter()
            act(number)
            times.append(1000 * (perf_counter() - start))
    return [statistics.median(times) for times in spent]


def syncs(folder: Path, calls: int) -> float:
    """What this disk takes to have 4 KiB for certain, in milliseconds."""
    with (folder / "probe").open("wb", buffering=0) as probe:

        def sync(_: int) -> None:
            probe.write(b"x" * 4096)
            os.fdatasync(probe.fileno())

        return timed(calls, sync)[0]


def measure(name: str, store: MeshStore, calls: int) -> None:
    """Print one store's lines."""
    found = TrustBreak(
        id="b1", seq=1, epoch=0, detector="d", reason="r", selector=Steps(steps=("x",))
    )
    fresh(store, "warm", 0, None)
    plain, gated = timed(
        calls,
        lambda n: fresh(store, "plain", n, None),
        lambda n: fresh(store, "gated", n, asked(n, epoch=0)),
    )
    reach = [Reach(run=run, steps=FROZEN) for run in ("r11", "r1")]
    store.break_trust(found, run="r0", reach=reach)
    broken, replayed, confirmed, withheld = timed(
        calls,
        lambda n: fresh(store, "broken", n, asked(n, epoch=1)),
        lambda n: told(store, "plain", n, None),
        lambda n: told(store, "broken", n, asked(n, epoch=1)),
        lambda n: told(store, "none", n, asked(1, epoch=1, frozen=True)),
    )
    print(
        f"{name:<10} {plain:>8.3f} {gated:>8.3f} {gated / plain:>6.2f}x {broken:>10.3f} "
        f"{replayed:>10.3f} {confirmed:>10.3f} {withheld:>10.3f}",
        flush=True,
    )


@contextmanager
def stores(folder: Path) -> Iterator[dict[str, MeshStore]]:
    """A new store of each kind that can be had here."""
    with ExitStack() as stack:
        made: dict[str, MeshStore] = {"memory": MemoryStore(clock=SystemClock(), header=HEADER)}
        sqlite = SqliteStore(folder / "l.db", agent="clerk", header=HEADER, clock=SystemClock())
        made["sqlite"] = stack.enter_context(closing(sqlite))
        if (why := emulators_missing()) is not None:
            print(f"firestore: left out, {why}")
        else:
            from backstop.adapters.firestore import FirestoreStore

            firestore = FirestoreStore(
                project="p",
                database="(default)",
                collection="bench",
                agent="clerk",
                header=HEADER,
                clock=SystemClock(),
                emulator=stack.enter_context(firestore_emulator()),
            )
            made["firestore"] = stack.enter_context(closing(firestore))
        yield made


def main() -> None:
    """Print the table."""
    calls = int(sys.argv[1]) if len(sys.argv) > 1 else CALLS
    with tempfile.TemporaryDirectory() as name, stores(Path(name)) as opened:
        print(f"{calls} calls each, medians in ms; fdatasync of 4 KiB {syncs(Path(name), 100):.3f}")
        print("claim + commit, then claims that run nothing; 1,000 steps are frozen elsewhere")
        print(
            f"{'store':<10} {'plain':>8} {'gated':>8} {'':>7} {'after break':>10} "
            f"{'told':>10} {'told gated':>10} {'withheld':>10}"
        )
        for store, it in opened.items():
            measure(store, it, calls)


if __name__ == "__main__":
    main()
