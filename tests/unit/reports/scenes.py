"""Comments of every kind, by name: what golden files hold and what laws are asked of."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from backstop.core.divergence import Kind
from backstop.core.verdict import Coverage, Decision, LedgerFacts, Verdict
from backstop.reports.carried import remembered
from backstop.reports.comment import render_comment, render_error, render_not_applicable
from backstop.reports.context import CommentContext
from tests.verdicts import (
    ACCEPTED,
    AGREED,
    ATTACKED,
    BLOCKED,
    CHANGED,
    DROPPED,
    INCONCLUSIVE,
    PASSED,
    RELABELLED,
    UNSHOWN,
    UNSTABLE,
    WARNED,
    agent_verdict,
)

CONTEXT: Final = CommentContext(
    config_id="backstop-yaml",
    run=7,
    head="abc1234def5678abc1234def5678abc1234def56",
    base="0123456789abcdef0123456789abcdef01234567",
    run_url="https://github.example/org/agents/actions/runs/7",
    report="backstop-report",
    docs="https://github.example/org/backstop/blob/v1/docs",
    ledgers={"vendor-onboarding": "the base branch, commit 0123456"},
    paths={"vendor-onboarding": "agents/vendor_onboarding"},
    base_paths={"vendor-onboarding": "agents/vendor_onboarding"},
    versions={"Backstop": "1.0.0", "google-adk": "2.11.0"},
)
TWICE: Final = Verdict(
    agents=(
        agent_verdict(
            *(
                replace(
                    RELABELLED,
                    tool="create_purchase_order",
                    run="acme-2026",
                    step=step,
                    fingerprint=fingerprint * 4,
                )
                for step, fingerprint in (
                    ("s7", "2a31ecc1"),
                    ("s11", "07ca2daf"),
                    ("s15", "d58326c6"),
                )
            ),
            coverage=Coverage(runs_compared=7, runs_total=7, steps_total=146),
            why=("3 DUPLICATE",),
        ),
    )
)
"""The specimen's verdict on v3: three purchase orders would go out again."""

THOUSANDS: Final = Verdict(
    agents=(
        agent_verdict(CHANGED, agent="airline", decision=Decision.PASS),
        agent_verdict(
            *(replace(DROPPED, run=f"run-{number:04}") for number in range(1_000)),
            *(
                replace(RELABELLED, run=f"run-{number:04}", fingerprint=f"{number:032x}")
                for number in range(4_000)
            ),
        ),
    )
)
FIRST: Final = Verdict(
    agents=(
        replace(
            PASSED.agents[0],
            coverage=Coverage(),
            ledger=LedgerFacts(),
            counts={},
        ),
    )
)
SEVERAL: Final = Verdict(
    agents=(
        replace(PASSED.agents[0], agent="billing"),
        replace(INCONCLUSIVE.agents[0], agent="airline"),
        TWICE.agents[0],
        replace(PASSED.agents[0], agent="desk", coverage=Coverage()),
        replace(FIRST.agents[0], agent="fresh", neutral=True, decision=Decision.INCONCLUSIVE),
    )
)
EARLIER: Final = remembered(
    agent_verdict(CHANGED, agent="desk", decision=Decision.PASS),
    head="fedcba9876543210",
    show_values=False,
)
UNTOUCHED: Final = replace(CONTEXT, untouched=("mail",), carried=(EARLIER,))
LOG: Final = "Step 3/7 : RUN pip install\nERROR: no wheel of `left-pad`\n```\n::error::forged\n"
SCENES: Final = {
    "block": render_comment(TWICE, CONTEXT),
    "block-values": render_comment(TWICE, replace(CONTEXT, show_values=True)),
    "everything": render_comment(BLOCKED, replace(CONTEXT, notes=("the policy is edited",))),
    "pass": render_comment(PASSED, CONTEXT),
    "pass-with-warnings": render_comment(WARNED, CONTEXT),
    "inconclusive": render_comment(INCONCLUSIVE, CONTEXT),
    "bootstrap": render_comment(FIRST, CONTEXT),
    "several": render_comment(SEVERAL, UNTOUCHED),
    "accepted": render_comment(ACCEPTED, CONTEXT),
    "unstable": render_comment(UNSTABLE, CONTEXT),
    "unshown": render_comment(UNSHOWN, CONTEXT),
    "agreed": render_comment(AGREED, CONTEXT),
    "strict": render_comment(BLOCKED, replace(CONTEXT, fail_on=frozenset(Kind))),
    "attacked": render_comment(ATTACKED, CONTEXT),
    "thousands": render_comment(THOUSANDS, CONTEXT),
    "error": render_error(
        "image-build",
        "vendor-onboarding: pip found no wheel of left-pad (requirements.txt, line 3); "
        "pin a version that has one",
        CONTEXT,
        log=LOG,
    ),
    "not-applicable": render_not_applicable(UNTOUCHED),
}
