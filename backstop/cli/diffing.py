"""``backstop diff``: two files in, a verdict out."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter

from backstop.adapters.files import read_bytes
from backstop.cli.options import CONFIG_FILE, Format, keep_apart, kinds
from backstop.cli.reporting import report
from backstop.config import Agent, Config, load
from backstop.core import intentsfile, ledgerfile
from backstop.core.events import Header
from backstop.core.identity import Namespace
from backstop.core.intentsfile import Intents
from backstop.core.keycheck import Keys, false_intent
from backstop.core.ledgerfile import Ledger
from backstop.core.sealing import kind_of
from backstop.core.verdict import Verdict
from backstop.errors import LedgerError
from backstop.gate.diff import diff as compare_files
from backstop.wiring import policy_of


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
    recorded = _ledger(read_bytes(baseline, kind="ledger"), baseline, agent=expected)
    asked = _candidate(candidate, recorded.header)
    loaded = perf_counter()
    verdict = compare_files(
        recorded,
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


def _candidate(path: Path, header: Header) -> Ledger | Intents:
    data = read_bytes(path, kind="intents")
    if kind_of(data[: data.find(b"\n") + 1]) == "ledger":
        return _ledger(data, path, agent=header.agent)
    found = intentsfile.read(data, name=str(path), expect_agent=header.agent)
    owner = Namespace(agent=header.agent, app=header.app, tenant=header.tenant)
    for number, intent in enumerate(found.intents, start=1):
        if false := false_intent(intent, found.header.declarations, owner):
            raise intentsfile.IntentsError(
                f"{path}: intent {number} ({intent.tool}): {false}. Replay again.",
                slug="intents-key",
            )
    return found


def _ledger(data: bytes, path: Path, *, agent: str | None) -> Ledger:
    """A ledger whose keys were worked out again: they decide everything (ADR 0016)."""
    ledger = ledgerfile.read(data, name=str(path), expect_agent=agent, effects_only=True)
    keys = Keys(ledger.header)
    for number, event in enumerate(ledger.events, start=2):
        if false := keys.false(event):
            raise LedgerError(
                f"{path}, line {number}: {false}. `backstop ledger verify` says more.",
                slug="ledger-key",
            )
    return ledger
