"""Verdicts for the tests of reports: one of everything, made by hand."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from decimal import Decimal

from backstop.core.baseline import BaselineUse
from backstop.core.canon import Json
from backstop.core.divergence import Divergence, Half, Kind, Reason
from backstop.core.stability import UnstableField
from backstop.core.unshown import Lack, UnshownFinding
from backstop.core.verdict import (
    AgentVerdict,
    Coverage,
    Decision,
    Judged,
    LedgerFacts,
    Verdict,
)
from backstop.core.waivers import ByFingerprint, Standing, Waiver, WaiverUse

DIGEST = "sha256:" + "ab" * 32

HOSTILE = "\x1b[2J\x1b]0;owned\x07[bold red]rich[/] \u202eevil\u2066 a\nb\r\x9b1m \u200b:smile:"


def half(args: dict[str, Json], *, key: str = "k", tool: str = "pay", step: str = "s1") -> Half:
    return Half(tool=tool, run="r1", step=step, key=key, fingerprint=f"f-{key}", args=args)


def divergence(  # noqa: PLR0913  # a divergence has that many sides
    kind: Kind,
    reason: Reason,
    recorded: Half | None,
    intended: Half | None,
    *,
    tool: str = "pay",
    run: str = "r1",
    step: str = "s1",
    paths: tuple[str, ...] = (),
    difference: tuple[str, ...] = (),
    suggestion: str | None = None,
    assumed: bool = False,
    in_doubt: bool = False,
    handover: bool = False,
) -> Divergence:
    return Divergence(
        kind=kind,
        reason=reason,
        tool=tool,
        run=run,
        step=step,
        cursor=1,
        recorded=recorded,
        intended=intended,
        fingerprint=f"{kind.value}-{reason.value}",
        paths=paths,
        difference=difference,
        suggestion=suggestion,
        assumed=assumed,
        in_doubt=in_doubt,
        handover=handover,
    )


RELABELLED = divergence(
    Kind.DUPLICATE,
    Reason.RELABELLED,
    half({"vendor_id": "acme-corp", "amount": Decimal("4200.50")}, key="k-old", tool="order"),
    half({"vendor_id": "ACME Corp", "amount": Decimal("4200.50")}, key="k-new", tool="order"),
    tool="order",
    paths=("/vendor_id",),
    difference=("case", "punctuation"),
    suggestion="slug",
)
CHANGED = divergence(
    Kind.MUTATED,
    Reason.CHANGED,
    half({"lines": [{"qty": 1}, {"qty": 2}], "po/ref": "7"}),
    half({"lines": [{"qty": 1}], "po/ref": None}, step="s2"),
    paths=("/lines/1", "/po~1ref"),
)
DROPPED = divergence(Kind.MISSING, Reason.DROPPED, half({"to": "müller@example.org"}), None)
NEW = divergence(Kind.EXTRA, Reason.NEW, None, half({f"a{place:02}": place for place in range(12)}))
ASSUMED = divergence(Kind.EXTRA, Reason.NEW, None, half({}), assumed=True, handover=True)
DOUBT = divergence(
    Kind.DUPLICATE,
    Reason.REPEATED,
    half({"id": 1}),
    half({"id": 1}),
    in_doubt=True,
)
ATTACK = divergence(
    Kind.DUPLICATE,
    Reason.RELABELLED,
    half({HOSTILE: HOSTILE}, tool=HOSTILE),
    half({HOSTILE: HOSTILE.upper()}, tool=HOSTILE),
    tool=HOSTILE,
    run=HOSTILE,
    step=HOSTILE,
    paths=("/" + HOSTILE.replace("/", "~1"),),
    difference=("case",),
    suggestion="casefold",
)


def agent_verdict(
    *found: Divergence | Judged,
    agent: str = "vendor-onboarding",
    decision: Decision = Decision.BLOCK,
    coverage: Coverage | None = None,
    why: tuple[str, ...] = (),
    notes: tuple[str, ...] = (),
    waivers: tuple[WaiverUse, ...] = (),
    baseline: BaselineUse | None = None,
) -> AgentVerdict:
    judged = tuple(one if isinstance(one, Judged) else Judged(divergence=one) for one in found)
    kinds = [one.divergence.kind for one in judged if not one.divergence.assumed]
    return AgentVerdict(
        agent=agent,
        decision=decision,
        ledger=LedgerFacts(events=1094, effects=42, runs=7, digest=DIGEST),
        coverage=coverage or Coverage(runs_compared=7, runs_total=7),
        counts={
            "match": 39,
            **{kind.value.lower(): kinds.count(kind) for kind in Kind},
            "absorbed": 0,
            "in_doubt": 0,
            "failed": 2,
            "recorded_twice": 0,
            "assumed": sum(one.divergence.assumed for one in judged),
            "waived": sum(one.waiver is not None for one in judged),
            "pre_existing": sum(one.pre_existing for one in judged),
            "known": sum(one.known for one in judged),
            "unstable": sum(one.unstable for one in judged),
        },
        judged=judged,
        why=why,
        notes=notes,
        waivers=waivers,
        baseline=baseline,
    )


def waiver(
    about: str, reason: str, *, line: int, kind: Kind | Lack | None = None, added: bool = False
) -> Waiver:
    return Waiver(
        names=ByFingerprint(fingerprint=about),
        agent="vendor-onboarding",
        reason=reason,
        author="eva@example.org",
        expires=date(2026, 12, 14),
        kind=kind,
        place=f"backstop-waivers.yaml:{line}",
        added=added,
    )


BLOCKED = Verdict(
    agents=(
        agent_verdict(
            RELABELLED,
            DOUBT,
            CHANGED,
            DROPPED,
            NEW,
            ASSUMED,
            Judged(divergence=RELABELLED, pre_existing=True),
            Judged(divergence=DROPPED, waiver="agreed with finance"),
            why=("2 DUPLICATE",),
            notes=("judged under two declarations",),
        ),
    )
)
INCONCLUSIVE = Verdict(
    agents=(
        agent_verdict(
            decision=Decision.INCONCLUSIVE,
            coverage=Coverage(
                runs_compared=6,
                runs_total=7,
                steps_total=40,
                steps_assumed=3,
                drift="drifted",
                drifted={"writer": ("instruction", "tools")},
                not_replayable={"r7": "agent-hangs"},
                uncovered=("the body of order",),
                doubts=("the control run does not reproduce r1",),
            ),
            why=("run r7 was not replayed to its end: agent-hangs",),
        ),
        agent_verdict(agent="airline", decision=Decision.PASS),
    )
)
PASSED = Verdict(agents=(agent_verdict(decision=Decision.PASS),))
WARNED = Verdict(agents=(agent_verdict(CHANGED, decision=Decision.PASS),))
ATTACKED = Verdict(
    agents=(
        agent_verdict(
            ATTACK,
            Judged(divergence=ATTACK, waiver=HOSTILE),
            agent=HOSTILE,
            coverage=Coverage(
                runs_compared=1,
                runs_total=2,
                steps_total=1,
                drifted={HOSTILE: (HOSTILE,)},
                not_replayable={HOSTILE: HOSTILE},
                uncovered=(HOSTILE,),
                doubts=(HOSTILE,),
            ),
            why=(HOSTILE,),
            notes=(HOSTILE,),
            waivers=(
                WaiverUse(
                    waiver=replace(waiver(HOSTILE, HOSTILE, line=1, added=True), author=HOSTILE),
                    standing=Standing.EXPIRED,
                    note="expired on 2026-12-14",
                ),
            ),
            baseline=BaselineUse(
                date="2026-11-30", by=HOSTILE, ledger=HOSTILE, findings=1, gone=1, added=1
            ),
        ),
    )
)
UNSTABLE = Verdict(
    agents=(
        replace(
            agent_verdict(
                Judged(divergence=RELABELLED, unstable=True),
                decision=Decision.INCONCLUSIVE,
                coverage=Coverage(
                    runs_compared=6,
                    runs_total=7,
                    steps_total=40,
                    steps_lost=4,
                    not_replayable={"r7": "agent-hangs"},
                ),
                why=("1 DUPLICATE in nothing but what comes out otherwise in each replay",),
            ),
            replays=2,
            unstable=(
                UnstableField(
                    tool="order", path="/vendor_id", run="r1", step="s1", names_target=True
                ),
                UnstableField(tool="mail", path="/to", run="r1", step="s2", is_order=True),
                UnstableField(
                    tool=HOSTILE,
                    path=f"/{HOSTILE}",
                    run=HOSTILE,
                    step=HOSTILE,
                    times=3,
                    in_base=True,
                ),
                UnstableField(tool="mail", path="/ref", run="r2", step="s2", in_base=False),
            ),
        ),
    )
)
ACCEPTED = Verdict(
    agents=(
        agent_verdict(
            Judged(divergence=RELABELLED, known=True),
            Judged(divergence=DROPPED, waiver="agreed with finance"),
            CHANGED,
            decision=Decision.PASS,
            waivers=(
                WaiverUse(
                    waiver=waiver("ab" * 16, "agreed with finance", line=3, added=True),
                    standing=Standing.USED,
                    matched=1,
                    waived=1,
                ),
                WaiverUse(
                    waiver=waiver("cd" * 16, "until the fair", line=9),
                    standing=Standing.UNUSED,
                    note="names nothing that was found: remove it",
                ),
                WaiverUse(
                    waiver=waiver("ef" * 16, "for now", line=15, kind=Kind.EXTRA, added=True),
                    standing=Standing.NOT_COUNTED,
                    matched=1,
                    note="comes with this change: it counts once it is on the base (gate.waivers)",
                ),
            ),
            baseline=BaselineUse(
                date="2026-11-30",
                by="eva@example.org",
                ledger=DIGEST,
                findings=4,
                known=1,
                gone=3,
                added=2,
                counted=False,
            ),
        ),
        agent_verdict(
            agent="airline",
            decision=Decision.PASS,
            baseline=BaselineUse(date="2026-11-01", by="", ledger=DIGEST, added=1),
        ),
    )
)
EMPTY = Verdict(agents=())

BODY = UnshownFinding(
    fingerprint="6b" * 16,
    told="what refund does inside changed; no replay runs it",
    waiver="rounding, read and tested (eva@example.org, until 2026-12-14)",
)
BRANCH = UnshownFinding(
    fingerprint="7c" * 16, told="agent.py:27 ask: a branch changed and no run reached it"
)
_AGREED = WaiverUse(
    waiver=waiver(
        BODY.fingerprint, "rounding, read and tested", line=3, kind=Lack.UNCOVERED, added=True
    ),
    standing=Standing.USED,
    matched=1,
    waived=1,
    unshown=1,
)


def lacking(*unshown: UnshownFinding) -> Coverage:
    """Coverage of all runs, in which these are not shown."""
    told = tuple(one.told for one in unshown)
    return Coverage(runs_compared=7, runs_total=7, uncovered=told, unshown=unshown)


UNSHOWN = Verdict(
    agents=(
        agent_verdict(
            decision=Decision.INCONCLUSIVE,
            coverage=lacking(BODY, BRANCH),
            why=(BRANCH.why,),
            waivers=(_AGREED,),
        ),
    )
)
AGREED = Verdict(
    agents=(agent_verdict(decision=Decision.PASS, coverage=lacking(BODY), waivers=(_AGREED,)),)
)
NAMED = {
    "blocked": BLOCKED,
    "inconclusive": INCONCLUSIVE,
    "passed": PASSED,
    "warned": WARNED,
    "attacked": ATTACKED,
    "empty": EMPTY,
    "accepted": ACCEPTED,
    "unstable": UNSTABLE,
    "unshown": UNSHOWN,
    "agreed": AGREED,
}
