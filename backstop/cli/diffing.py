"""``backstop diff``: two files in, a verdict out."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter

from backstop.adapters.files import read_bytes
from backstop.cli.options import CONFIG_FILE, Format, kinds
from backstop.cli.reporting import report
from backstop.config import Agent, Config, load
from backstop.core import intentsfile, ledgerfile
from backstop.core.intentsfile import Intents
from backstop.core.ledgerfile import Ledger
from backstop.core.sealing import kind_of
from backstop.core.verdict import Verdict
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
    configured, chosen = choose(config, agent)
    expected = agent if chosen is None else chosen.name
    recorded = ledgerfile.read(
        read_bytes(baseline, kind="ledger"),
        name=str(baseline),
        expect_agent=expected,
        effects_only=True,
    )
    asked = _candidate(candidate, agent=recorded.header.agent)
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


def _candidate(path: Path, *, agent: str) -> Ledger | Intents:
    data = read_bytes(path, kind="intents")
    if kind_of(data[: data.find(b"\n") + 1]) == "ledger":
        return ledgerfile.read(data, name=str(path), expect_agent=agent, effects_only=True)
    return intentsfile.read(data, name=str(path), expect_agent=agent)
