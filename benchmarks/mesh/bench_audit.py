"""The embedded audit at a million events: bytes an event, writing, checking, figures, radius.

    python -m benchmarks.mesh.bench_audit [EVENTS]

A realistic fleet: runs of nine checkpoints, each made from up to three before it, and an effect.
Written, checked and asked in one process. The radius of one step in each of a hundred runs is
worked out by SQL over the archived lines, and held to what is known of it.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from time import perf_counter
from typing import Final

import duckdb
import msgspec

from backstop.adapters.archives.parquet import ParquetArchive
from backstop.core.auditlog import ORIGIN, Entry, entry_of, tip_at
from backstop.core.auditwalk import Walk, note_of
from backstop.core.canon import CANON_VERSION, digest
from backstop.core.checkpoint import Checkpoint, Dep, DepKind, StepKind, Usage
from backstop.core.events import FORMAT, Checkpointed, EffectCommitted, Event, Header
from backstop.core.reckoning import reckon
from backstop.core.sealing import Sealer
from backstop.wiring.auditing import audit_archive

STEPS: Final = 9
BATCH: Final = 50_000
ASKED: Final = 100

RADIUS: Final = """
    WITH RECURSIVE edge AS (
        SELECT run, line->>'$.step' AS step,
            unnest(from_json(line->'$.body.deps', '["JSON"]')) AS dep
        FROM '{folder}/entries-*.parquet'
        WHERE kind = 'checkpoint' AND run IN (SELECT 'r' || i FROM range({asked}) t(i))
    ), made AS (
        SELECT run, step, dep->>'$.ref' AS made_from FROM edge WHERE dep->>'$.kind' = 'upstream'
    ), reached AS (
        SELECT DISTINCT run, made_from AS step FROM made
        WHERE made_from = 's0'
        UNION
        SELECT made.run, made.step FROM reached
        JOIN made ON made.run = reached.run AND made.made_from = reached.step
    )
    SELECT count(*) FROM reached
"""


def events(count: int) -> Iterator[Event]:
    """So many events, in runs of ten."""
    for number in range(count):
        run, step = divmod(number, STEPS + 1)
        day = f"2026-{1 + run % 12:02}-{1 + run % 28:02}"
        at = f"{day}T06:00:00.{number % 1000:03}Z"
        if step == STEPS:
            yield EffectCommitted(run=f"r{run}", at=at, key=digest(str(number)))
            continue
        read = [Dep(DepKind.UPSTREAM, f"s{one}", _output(run, one)) for one in range(step)][-3:]
        one = Checkpoint(
            run=f"r{run}",
            step=f"s{step}",
            kind=StepKind.MODEL,
            output=_output(run, step),
            producer="recorder",
            observed_at=1_770_000_000.0 + number,
            deps=tuple(read),
            usage=Usage(calls=1, input_tokens=400),
        )
        body = msgspec.Raw(msgspec.json.encode(one))
        yield Checkpointed(run=f"r{run}", at=at, step=f"s{step}", body=body)


def _output(run: int, step: int) -> str:
    return digest(f"{run}/{step}")


def entries(count: int) -> list[Entry]:
    """A whole archive of so many events."""
    header = Header(format=FORMAT, agent="fleet", canon=CANON_VERSION)
    sealer, walk = Sealer(header), Walk("bench")
    made: list[Entry] = [entry_of(header, msgspec.json.encode(header), after=ORIGIN)]
    walk.take(made[0])
    for event in events(count):
        prev = sealer.head(event.run)
        linked = msgspec.structs.replace(event, prev=prev)
        made.append(entry_of(linked, sealer.add(event)[:-1], after=tip_at(made[-1])))
        walk.take(made[-1])
    note = note_of(walk, digest=sealer.seal().digest, signature=None)
    made.append(entry_of(note, msgspec.json.encode(note), after=walk.tip))
    return made


def timed(what: str, began: float) -> None:
    """Print how long something took."""
    print(f"{what:<44} {perf_counter() - began:8.2f} s", flush=True)


def main() -> None:
    """Write, check and ask, and print the figures."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    began = perf_counter()
    told = entries(count)
    timed(f"{count:,} events made into entries (Python)", began)
    began = perf_counter()
    days = reckon(told)
    timed("figures, pure", began)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "kept"
        with closing(ParquetArchive(place, create=True)) as archive:
            began = perf_counter()
            for first in range(0, len(told), BATCH):
                archive.append(told[first : first + BATCH])
            timed(f"written, {BATCH:,} entries a file", began)
            size = sum(file.stat().st_size for file in place.glob("*.parquet"))
            lines = sum(len(one.line) for one in told)
            print(f"{size / count:.0f} bytes an event, of lines of {lines / count:.0f} bytes")
            began = perf_counter()
            archive.check()
            timed("numbers, links and hashes checked by SQL", began)
            began = perf_counter()
            if list(archive.days()) != days:
                sys.exit("the figures by SQL are not those of the pure reckoning")
            timed("figures by SQL, equal to the pure ones", began)
            began = perf_counter()
            audit_archive(archive, name="bench")
            timed("report audit, all of it", began)
        began = perf_counter()
        with duckdb.connect() as db:
            row = db.execute(RADIUS.format(folder=place, asked=ASKED)).fetchone()
        timed(f"radius of one step in {ASKED} runs, by SQL", began)
        if row != (ASKED * STEPS,):
            sys.exit(f"the radius by SQL is {row}, not {ASKED * STEPS}")


if __name__ == "__main__":
    main()
