"""Replays in a real sandbox, judged: what the end-to-end tests share."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from backstop.adapters.content import files_of, version_of
from backstop.adapters.process import ProcessSandbox
from backstop.core.declaration import Declaration, Namespace
from backstop.core.history import effect_rows
from backstop.core.ledgerfile import Ledger
from backstop.core.redaction import RedactionKey
from backstop.core.verdict import AgentVerdict, Policy
from backstop.gate.comparing import Asked
from backstop.gate.judge import Recorded, judge
from backstop.gate.lacking import Lacking
from backstop.ports import Sandbox
from backstop.replay.bundle import MODULE, write_bundle
from backstop.replay.code import Code
from backstop.replay.service import Plan, Replay, replay

SANDBOX = ProcessSandbox(bundle=write_bundle, module=MODULE)


def replayed(
    ledger: Ledger,
    agent: Path,
    *,
    declarations: dict[str, Declaration] | None = None,
    base: Replay | None = None,
    is_control: bool = False,
    workers: int = 1,
    key: RedactionKey | None = None,
    sandbox: Sandbox = SANDBOX,
) -> Replay:
    """What the agent in folder `agent` asks for, given the ledger."""
    plan = Plan(
        header=ledger.header,
        events=ledger.events,
        ledger=ledger.digest,
        candidate=agent,
        version=version_of(agent),
        declarations=declarations or {},
        control=base.requests if base else {},
        handed=base.handed if base else {},
        is_control=is_control,
        base=base,
        code=Code.of(files_of(agent)),
        workers=workers,
        redaction_key=key,
    )
    return replay(plan, sandbox)


def verdict(
    ledger: Ledger,
    candidate: Replay,
    *,
    control: Replay | None = None,
    declarations: dict[str, Declaration] | None = None,
    guarded: bool = True,
) -> AgentVerdict:
    """The gate's word on a replay."""
    header = ledger.header
    return judge(
        Recorded(header=header, history=effect_rows([ledger.events]), digest=ledger.digest),
        asked(candidate),
        control=asked(control) if control else Lacking.UNNAMED,
        declarations=[declarations or {}],
        policies=[Policy()],
        namespace=Namespace(agent=header.agent, app=header.app, tenant=header.tenant),
        guarded=guarded,
    )


def findings(found: AgentVerdict) -> Counter[str]:
    """How many findings of each kind and reason, assumed ones apart."""
    return Counter(
        f"{one.divergence.kind.value} {one.divergence.reason.value}"
        + (" assumed" if one.divergence.assumed else "")
        for one in found.judged
    )


def asked(done: Replay) -> Asked:
    """What a replay asked for, as the gate takes it."""
    return Asked(
        intents=done.intents,
        keyed_under=done.header.declarations,
        schemas=done.schemas,
        said=done.said,
        guarded=frozenset(done.header.guarded),
        replayed={run.run: run for run in done.runs},
        uncovered=done.header.uncovered,
        unshown=done.header.unshown,
        escapes=done.header.escapes,
        version=done.header.candidate,
    )
