"""``backstop gate`` and ``backstop replay``."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

import typer

from backstop.adapters.files import check_writable, write_atomic
from backstop.cli.options import Format, keep_apart, kinds
from backstop.cli.progress import progress_bar
from backstop.cli.reporting import report
from backstop.config import load
from backstop.errors import UsageError
from backstop.gate.request import GateRequest, Judgement, ReplayRequest, Runtime, SandboxKind
from backstop.reports.escape import plain
from backstop.reports.explain import count_of

_REMARK: Final = 400


def gate(
    request: ReplayRequest,
    *,
    fail_on: str | None,
    allow_empty: bool,
    changed_only: bool,
    repeat: int,
    cache_dir: Path | None,
    form: Format,
    output: Path | None,
) -> int:
    """Judge a version and report; the exit code."""
    from backstop.wiring.caching import CACHE_KEY
    from backstop.wiring.gating import gate as judge

    keep_apart(output, *_read_by(request), option="--output")
    if output is not None:
        check_writable(output)
    wanted = GateRequest(
        replay=request,
        fail_on=None if fail_on is None else kinds(fail_on),
        allow_empty=allow_empty,
        changed_only=changed_only,
        repeat=repeat,
        cache_dir=cache_dir,
        cache_key=os.environ.get(CACHE_KEY),
    )
    with progress_bar() as progress:
        judgement = judge(wanted, progress=progress, say=_announcer())
    for remark in (*_origins(judgement), *judgement.remarks):
        sys.stderr.write(f"note: {plain(remark, limit=_REMARK)}\n")
    return report(judgement.verdict, timing_ms=judgement.timing_ms, form=form, output=output)


def _announcer() -> Callable[[str], None] | None:
    """Tells a person who watches what takes long; nothing to a pipe."""
    if not sys.stderr.isatty():
        return None
    return lambda what: typer.echo(plain(what, limit=_REMARK), err=True)


def _origins(judgement: Judgement) -> list[str]:
    """Where ledgers came from, as far as no file that the caller named says so."""
    return [
        f"{agent}: ledger {origin}"
        for agent, origin in judgement.ledgers.items()
        if "://" in origin
    ]


def replay(request: ReplayRequest, *, out: Path) -> str:
    """Replay a version, write its intents to `out`; what came of it, in one line."""
    from backstop.wiring.gating import replay as play

    keep_apart(out, *_read_by(request), option="--out")
    check_writable(out)
    with progress_bar() as progress:
        written = play(request, progress=progress, say=_announcer())
    write_atomic(out, written.data)
    return (
        f"{plain(str(out))}: replayed {written.runs_replayed:,} of {written.runs_total:,} runs, "
        f"{count_of(written.intents, 'intent')}; {count_of(written.calls, 'model call')}"
    )


def _read_by(request: ReplayRequest) -> list[Path | str | None]:
    """The configuration, the ledgers that it names, and the cassette."""
    ledgers = (agent.ledger for agent in load(request.config).agents.values())
    return [request.config, request.cassette, *ledgers]


class Where(NamedTuple):
    """Where the code of the two versions runs, and on whose packages."""

    sandbox: SandboxKind | None
    runtime: Runtime | None
    candidate_python: str | None = None
    base_python: str | None = None


def asked(
    *,
    config: Path,
    agent: str | None,
    candidate: Path | None,
    base: Path | None,
    where: Where,
    cassette: Path | None = None,
    offline: bool = False,
) -> ReplayRequest:
    """The request that the options of both commands make."""
    from backstop.wiring.checkouts import base_below

    if offline and (cassette is None or not cassette.exists()):
        missing = "none is named" if cassette is None else f"{plain(str(cassette))} is not there"
        raise UsageError(
            f"--offline takes every answer from a cassette, and {missing}; name one by --cassette"
        )
    below = None if base is None else base_below(base, config)
    return ReplayRequest(
        config=config,
        agent=agent,
        candidate=candidate,
        base=below or base,
        base_is_checkout=below is not None,
        **where._asdict(),
        cassette=cassette,
        offline=offline,
    )
