"""``backstop ledger verify|show|stats|seal``."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

import msgspec

from backstop.adapters.files import chunks, write_atomic
from backstop.cli.options import Format, keep_apart
from backstop.clock import SystemClock
from backstop.core import ledgerfile
from backstop.core.canon import NotCanonical, canonical, parse
from backstop.core.events import (
    CallBlocked,
    EffectClaimed,
    EffectCommitted,
    EffectFailed,
    EffectInDoubt,
    EffectResolved,
    Event,
    Header,
    ModelAnswered,
    RunClosed,
    Seal,
    StepStarted,
    ToolRead,
)
from backstop.core.history import effect_rows
from backstop.errors import LedgerError, UsageError
from backstop.reports.escape import in_json, plain
from backstop.reports.explain import count_of
from backstop.wiring.signing import Checked, Signer, check_signed, signer

_ARGUMENTS = 100
_RUNS_NAMED = 5
_EFFECTS = (
    EffectClaimed | EffectCommitted | EffectFailed | EffectInDoubt | EffectResolved | CallBlocked
)


def verify(
    file: Path, *, agent: str | None, trusted: Path | None = None, high_water: Path | None = None
) -> str:
    """One line for a ledger that holds. Raises `LedgerError`, silent skips included.

    With `trusted` it must be signed by one of those keys, with `high_water` it must hold what
    was seen before. Raises `UsageError` for a mark without keys: anybody could raise it.
    """
    if trusted is None:
        if high_water is not None:
            raise UsageError("--high-water: needs --trusted-keys, or anybody could raise the mark")
        found = ledgerfile.verify(chunks(file, kind="ledger"), name=str(file), expect_agent=agent)
        return f"{_holds(file, found)}; {_unchecked(found.seal)}"
    keep_apart(high_water, file, trusted, option="--high-water")
    checked = check_signed(file, agent=agent, trusted=trusted, high_water=high_water)
    by = checked.by
    signed = f"signed by {by.keyid} ({plain(by.note)}) at {plain(by.head.at)}"
    marked = "" if high_water is None else f"; {_mark_of(checked, high_water)}"
    return f"{_holds(file, checked.found)}; {signed}{marked}"


def _holds(file: Path, found: ledgerfile.Summary) -> str:
    return (
        f"{plain(str(file))}: holds. {_sealed(found)}{unsettled(found)}, "
        f"{count_of(found.runs, 'run')} ({found.open_runs:,} open); no silent skip; "
        f"sha256:{found.digest}"
    )


def _unchecked(seal: Seal) -> str:
    return "unsigned" if seal.signature is None else "signed, not checked (see --trusted-keys)"


def _mark_of(checked: Checked, path: Path) -> str:
    after = checked.after
    size = 0 if after is None else after.head.size
    told = f"high-water mark {plain(str(path))}: {count_of(size, 'event')}"
    if checked.before is None:
        return f"{told}, and begins here: what was before is not known"
    return told if checked.before is after else f"{told}, raised from {checked.before.head.size:,}"


def unsettled(found: ledgerfile.Summary) -> str:
    """What a person has yet to see to, as a part of a sentence; empty if there is nothing."""
    doubts = f", {found.in_doubt:,} in doubt" if found.in_doubt else ""
    return f"{doubts}, {found.out_twice:,} may be out twice" if found.out_twice else doubts


def _sealed(of: Seal | ledgerfile.Summary) -> str:
    return f"{count_of(of.events, 'event')}, {count_of(of.effects, 'side effect')}"


def show(file: Path, *, run: str | None, effects: bool) -> Iterator[str]:
    """A line for each event. The file's digest is checked when its end is reached.

    Raises `UsageError` (``run-unknown``) then, if no event is of `run`.
    """
    runs: dict[str, None] = {}
    with _held(file):
        for batch in ledgerfile.read_batches(chunks(file, kind="ledger"), name=str(file)):
            match batch:
                case Header():
                    yield f"ledger of {plain(batch.agent)}, written by {plain(batch.source)}"
                case Seal():
                    if run is not None and run not in runs:
                        raise _unknown(run, runs, file)
                    yield f"sealed: {_sealed(batch)}"
                case _:
                    runs.update(dict.fromkeys(event.run for event in batch))
                    yield from (_line(e) for e in batch if _is_wanted(e, run, effects=effects))


def _is_wanted(event: Event, run: str | None, *, effects: bool) -> bool:
    return (run is None or event.run == run) and (not effects or isinstance(event, _EFFECTS))


def _unknown(run: str, runs: Collection[str], file: Path) -> UsageError:
    more = ", ..." if len(runs) > _RUNS_NAMED else ""
    named = ", ".join(islice(runs, _RUNS_NAMED)) or "none"
    return UsageError(
        f"--run: {file} has no run {run!r}; it has {count_of(len(runs), 'run')}: {named}{more}",
        slug="run-unknown",
    )


@contextmanager
def _held(file: Path) -> Iterator[None]:
    """Whatever is found out about a ledger's events is the strict reader's to explain.

    What looks like a strange event is a damaged file more often than not, and only the digest
    tells. Raises `LedgerError`, which names the file.
    """
    try:
        yield
    except (LedgerError, NotCanonical) as fault:
        if file.is_file():  # a pipe cannot be read again
            ledgerfile.verify(chunks(file, kind="ledger"), name=str(file))
        if str(file) in str(fault):
            raise
        raise LedgerError(f"{file}: {fault}", slug=fault.slug) from None


def _line(event: Event) -> str:
    kind = str(event.__struct_config__.tag)
    return f"{plain(event.at)}  {plain(event.run)}  {kind}  {_detail(event)}".rstrip()


def _detail(event: Event) -> str:
    match event:
        case EffectClaimed() | ToolRead() | CallBlocked():
            return f"{plain(event.step)}  {plain(event.tool)}{_arguments(event.args)}"
        case EffectCommitted() | EffectInDoubt():
            return event.key[:12]
        case EffectFailed():
            return f"{event.key[:12]}  {plain(event.error.message, limit=_ARGUMENTS)}"
        case EffectResolved():
            return f"{event.key[:12]}  {plain(event.to)} by {plain(event.by)}"
        case StepStarted():
            return f"{plain(event.step)}  cursor {event.cursor}, {plain(event.trigger)}"
        case ModelAnswered():
            asked = f"{plain(event.agent)} #{event.ordinal}".lstrip()
            return f"{plain(event.step)}  {asked}"
        case RunClosed():
            return plain(event.status)
        case _:
            return plain(str(getattr(event, "step", "")))


def _arguments(raw: msgspec.Raw) -> str:
    return plain(canonical(parse(bytes(raw))), limit=_ARGUMENTS)


def stats(file: Path, *, form: Format) -> str:
    """Counts of events by kind, and of effects by tool and outcome."""
    events: Counter[str] = Counter()

    def counted() -> Iterator[list[Event]]:
        for batch in ledgerfile.read_batches(chunks(file, kind="ledger"), name=str(file)):
            if isinstance(batch, Header | Seal):
                continue
            events.update(str(event.__struct_config__.tag) for event in batch)
            yield batch

    with _held(file):
        history = effect_rows(counted())
    tools = Counter((row.tool, row.outcome.value) for row in history.rows)
    if form is Format.JSON:
        told = {
            "events": dict(sorted(events.items())),
            "runs": {"total": len(history.runs), "open": len(history.open)},
            "effects": [
                {"tool": tool, "outcome": outcome, "count": count}
                for (tool, outcome), count in sorted(tools.items())
            ],
        }
        text = in_json(msgspec.json.encode(told).decode())
        return msgspec.json.format(text.encode(), indent=2).decode()
    total, runs = count_of(events.total(), "event"), count_of(len(history.runs), "run")
    lines = [f"{total} in {runs} ({len(history.open):,} open)"]
    lines += [f"  {count:>9,}  {kind}" for kind, count in sorted(events.items())]
    lines += [count_of(history.committed, "side effect")]
    lines += [
        f"  {count:>9,}  {plain(tool)}, {outcome}"
        for (tool, outcome), count in sorted(tools.items())
    ]
    return "\n".join(lines)


def seal(file: Path, *, out: Path | None, key: Path | None = None, epoch: int = 0) -> str:
    """Seal `file` in place, or to `out`; nothing is written if a line is refused.

    With a key, in the file `key` or in the environment, the seal is signed as well; one that
    was sealed before is signed only, whatever its signature was.
    """
    target = file if out is None else out
    who = signer(key, os.environ, now=SystemClock().now(), epoch=epoch)
    source = target
    try:
        write_atomic(target, ledgerfile.seal(chunks(file, kind="ledger"), name=str(file)))
    except LedgerError as fault:
        if who is None or fault.slug != "ledger-sealed":
            raise
        source = file
    if who is None:
        return verify(target, agent=None)
    found = who.sign(source, target, name=str(source))
    return f"{_holds(target, found)}; {signed_by(who)}"


def signed_by(who: Signer | None) -> str:
    """Whether what was just written is signed, and by which key."""
    return "unsigned" if who is None else f"signed by {who.key.id}"
