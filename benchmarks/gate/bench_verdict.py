"""From two files to a verdict: loading, digest check, matching and decision, beside the floor.

    python -m benchmarks.gate.bench_verdict [LEDGER]

The intents are those that the version which wrote the ledger asks for: every recorded call,
answered by its row. All contenders take turns in one process.
"""

from __future__ import annotations

import hashlib
import statistics
import sys
from collections.abc import Callable
from pathlib import Path
from time import process_time
from typing import Final

import msgspec

from backstop.core import intentsfile, ledgerfile
from backstop.core.canon import CANON_VERSION
from backstop.core.events import Line
from backstop.core.history import effect_rows
from backstop.core.intents import (
    INTENTS_FORMAT,
    Answered,
    Intent,
    IntentLine,
    IntentsHeader,
    Pass,
    RunReplayed,
)
from backstop.core.ledgerfile import Ledger
from backstop.core.verdict import AgentVerdict, Decision, Policy
from backstop.gate.diff import diff

SPECIMEN: Final = Path("ledgers/vendor-onboarding.jsonl")
ROUNDS: Final = 200
LINES: Final = msgspec.json.Decoder(Line)
INTENT_LINES: Final = msgspec.json.Decoder(IntentLine)


def faithful_intents(ledger: Ledger) -> bytes:
    """The intents file of a version that asks for just what is recorded."""
    history = effect_rows([ledger.events])
    declared = {tool: ledger.header.declarations[d] for tool, d in ledger.header.tools.items()}
    intents = [
        Intent(
            run=row.run,
            step=row.step,
            cursor=row.cursor,
            tool=row.tool,
            key=row.key,
            fingerprint=row.fingerprint,
            args=row.args,
            answered=Answered.RECORDED,
            answered_by=row.index,
        )
        for row in history.rows
    ]
    handed = [
        msgspec.structs.replace(i, replay=Pass.HANDOVER) for i in intents if i.run in history.open
    ]
    header = IntentsHeader(
        format=INTENTS_FORMAT,
        agent=ledger.header.agent,
        canon=CANON_VERSION,
        ledger=ledger.digest,
        declarations=declared,
        tools=tuple(sorted(declared)),
        guarded=tuple(sorted(declared)),
    )
    runs = [RunReplayed(run=run) for run in history.runs]
    return intentsfile.write(header, [*intents, *handed, *runs])


def verdict(ledger: Path, intents: Path) -> AgentVerdict:
    """What `backstop diff` does between reading its arguments and printing."""
    recorded = ledgerfile.read(ledger.read_bytes(), name=ledger.name, effects_only=True)
    asked = intentsfile.read(intents.read_bytes(), name=intents.name)
    return diff(recorded, asked, policy=Policy())


def floor(ledger: Path, intents: Path) -> object:
    """The least that anybody has to do: read, hash and decode the same bytes."""
    told, asked = ledger.read_bytes(), intents.read_bytes()
    return (
        hashlib.sha256(told).hexdigest(),
        hashlib.sha256(asked).hexdigest(),
        LINES.decode_lines(told),
        INTENT_LINES.decode_lines(asked),
    )


def main() -> int:
    """Print medians and their ratio."""
    ledger = Path(sys.argv[1]) if len(sys.argv) > 1 else SPECIMEN
    intents = Path("out") / "bench.intents.jsonl"
    intents.parent.mkdir(exist_ok=True)
    intents.write_bytes(faithful_intents(ledgerfile.read(ledger.read_bytes(), name=ledger.name)))
    told = verdict(ledger, intents)
    if told.decision is not Decision.PASS:
        print(f"the faithful version does not pass: {told.why}", file=sys.stderr)
        return 1
    contenders: dict[str, Callable[[Path, Path], object]] = {"floor": floor, "verdict": verdict}
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(ROUNDS):
        for name, contender in contenders.items():
            contender(ledger, intents)  # sweeps up after whoever came before
            start = process_time()
            contender(ledger, intents)
            times[name].append(1000 * (process_time() - start))
    medians = {name: statistics.median(spent) for name, spent in times.items()}
    print(f"{ledger}: {told.ledger.events:,} events, {told.counts['match']} matches")
    print(f"  floor: read + sha256 + msgspec decode   {medians['floor']:6.2f} ms")
    print(f"  load + digest check + match + verdict   {medians['verdict']:6.2f} ms")
    print(f"  ratio                                   {medians['verdict'] / medians['floor']:6.2f}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
