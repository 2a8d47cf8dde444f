"""``backstop diff``: two files in, a verdict out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from time import perf_counter
from typing import Final

from backstop.adapters.files import chunks, read_bytes
from backstop.cli.options import CONFIG_FILE, Format, keep_apart, kinds
from backstop.cli.reporting import report
from backstop.config import Agent, Config, load
from backstop.core import intentsfile, ledgerfile
from backstop.core.declaration import Namespace
from backstop.core.events import Event, Header, Seal
from backstop.core.history import effect_rows
from backstop.core.intentsfile import Intents
from backstop.core.keycheck import Keys, false_intent
from backstop.core.ledgerfile import Batch
from backstop.core.sealing import kind_of
from backstop.core.verdict import Verdict
from backstop.errors import LedgerError
from backstop.gate.diff import diff as compare_files
from backstop.gate.diff import recorded
from backstop.gate.judge import Recorded
from backstop.wiring.jobs import policy_of

LARGE: Final = 16 << 20
"""Bytes of a file from which on it is not held in memory."""


def diff(
    baseline: Path,
    candidate: Path,
    *,
    config: Path | None,
    agent: str | None,
    fail_on: str | None,
    allow_empty: bool,
    form: Format,
    output: Path | None,
) -> int:
    """Compare two files and report; the exit code."""
    began = perf_counter()
    keep_apart(output, baseline, candidate, config or CONFIG_FILE, option="--output")
    configured, chosen = choose(config, agent)
    expected = agent if chosen is None else chosen.name
    known = ledger_of(baseline, agent=expected)
    asked = candidate_of(candidate, known.header)
    loaded = perf_counter()
    verdict = compare_files(
        known,
        asked,
        policy=policy_of(
            configured,
            fail_on=None if fail_on is None else kinds(fail_on),
            allow_empty=allow_empty,
        ),
        declarations=None if chosen is None else chosen.declarations,
        guarded=None if chosen is None else chosen.guarded,
    )
    timing = {"load": 1000 * (loaded - began), "verdict": 1000 * (perf_counter() - loaded)}
    return report(Verdict(agents=(verdict,)), timing_ms=timing, form=form, output=output)


def choose(config: Path | None, agent: str | None) -> tuple[Config | None, Agent | None]:
    """The configuration and its agent; neither, if neither was named."""
    if config is None and agent is None:
        return None, None
    configured = load(CONFIG_FILE if config is None else config)
    return configured, configured.agent(agent)


def candidate_of(path: Path, header: Header, *, large: int = LARGE) -> Recorded | Intents:
    """The intents of a file, or its ledger, for the agent of `header`; else as `ledger_of`."""
    if _is_large(path, large) and kind_of(next(chunks(path), b"").partition(b"\n")[0]) == "ledger":
        return _streamed(path, agent=header.agent)
    data = read_bytes(path, kind="intents")
    if kind_of(data[: data.find(b"\n") + 1]) == "ledger":
        return _at_once(data, path, agent=header.agent)
    found = intentsfile.read(data, name=str(path), expect_agent=header.agent)
    owner = Namespace(agent=header.agent, app=header.app, tenant=header.tenant)
    for number, intent in enumerate(found.intents, start=1):
        if false := false_intent(intent, found.header.declarations, owner):
            raise intentsfile.IntentsError(
                f"{path}: intent {number} ({intent.tool}): {false}. Replay again.",
                slug="intents-key",
            )
    return found


def ledger_of(path: Path, *, agent: str | None, large: int = LARGE) -> Recorded:
    """A ledger whose keys were worked out again: they decide everything (ADR 0013).

    From `large` bytes on it is read as a stream. Raises `LedgerError`.
    """
    if _is_large(path, large):
        return _streamed(path, agent=agent)
    return _at_once(read_bytes(path, kind="ledger"), path, agent=agent)


def _at_once(data: bytes, path: Path, *, agent: str | None) -> Recorded:
    ledger = ledgerfile.read(data, name=str(path), expect_agent=agent, effects_only=True)
    _check(ledger.events, Keys(ledger.header), path, first=2)
    return recorded(ledger)


def _streamed(path: Path, *, agent: str | None) -> Recorded:
    """The same without the file in memory."""
    batches = ledgerfile.read_batches(
        chunks(path, kind="ledger"), name=str(path), expect_agent=agent, effects_only=True
    )
    header = next(batches)
    assert isinstance(header, Header)  # noqa: S101 - the stream's contract: the header is first
    ends: list[Seal] = []
    history = effect_rows(_checked(batches, Keys(header), path, ends))
    return Recorded(header=header, history=history, digest=ends[0].digest)


def _checked(
    batches: Iterable[Batch], keys: Keys, path: Path, ends: list[Seal]
) -> Iterator[list[Event]]:
    """The events of a stream; its seal goes to `ends`."""
    count = 2
    for batch in batches:
        match batch:
            case list():
                _check(batch, keys, path, first=count)
                count += len(batch)
                yield batch
            case Seal():
                ends.append(batch)
            case Header():
                pass


def _check(events: Iterable[Event], keys: Keys, path: Path, *, first: int) -> None:
    for number, event in enumerate(events, start=first):
        if false := keys.false(event):
            raise LedgerError(
                f"{path}, line {number}: {false}. `backstop ledger verify` says more.",
                slug="ledger-key",
            )


def _is_large(path: Path, large: int) -> bool:
    """Whether a file is better read as a stream, which takes longer and holds less."""
    try:
        return path.stat().st_size > large
    except OSError:
        return False  # whoever reads it says what is wrong
