"""A made-up ledger of any size, in the shape of the vendor-onboarding one."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import count, islice
from typing import Any, Final

import msgspec

from backstop.core.canon import CANON_VERSION, short
from backstop.core.declaration import Declaration, Namespace
from backstop.core.events import (
    FORMAT,
    AttemptEnded,
    AttemptStarted,
    CursorAdvanced,
    EffectClaimed,
    EffectCommitted,
    Event,
    Header,
    ModelAnswered,
    RequestDigests,
    RunClosed,
    RunOpened,
    StepStarted,
    ToolRead,
)
from backstop.core.identity import identify, identify_read

STEPS_A_RUN: Final = 21
EVERY_SO_MANY_STEPS: Final = 3  # an effect in each third step

_START: Final = datetime(2026, 1, 5, 8, 0, 0, tzinfo=UTC)
_ORDER: Final = Declaration(tool="create_purchase_order", identity=("vendor_id", "po_ref"))
_LOOKUP: Final = Declaration(tool="lookup_vendor", effect=False)
_OWNER: Final = Namespace(agent="vendor-onboarding")

HEADER: Final = Header(
    format=FORMAT,
    agent="vendor-onboarding",
    canon=CANON_VERSION,
    guarded=True,
    tools={d.tool: d.digest for d in (_ORDER, _LOOKUP)},
    declarations={d.digest: d for d in (_ORDER, _LOOKUP)},
)


def events(total: int) -> Iterator[Event]:
    """The first `total` events of an endless, deterministic history."""
    return islice(_history(), total)


def _history() -> Iterator[Event]:
    for number in count():
        run = f"run-{number:06d}"
        yield RunOpened(run=run, at=_at(number, 0), app="onboarding", user="ops")
        for step in range(STEPS_A_RUN):
            yield from _step(run, number, step)
        yield RunClosed(run=run, at=_at(number, STEPS_A_RUN), status="complete")


def _step(run: str, number: int, step: int) -> Iterator[Event]:
    acts = step % EVERY_SO_MANY_STEPS == 0
    tool = _ORDER if acts else _LOOKUP
    args = {"vendor_id": f"vendor-{number}", "po_ref": f"PO-{number}-{step}", "amount": "1250.00"}
    named = identify if acts else identify_read
    found = named(args, tool, namespace=_OWNER, run=run, step=f"s{step}")
    key, other = found.key, short(found.key)
    here: dict[str, Any] = {"run": run, "at": _at(number, step), "v": other, "step": f"s{step}"}
    call: dict[str, Any] = {
        "tool": tool.tool,
        "agent": "clerk",
        "call": f"call-{step}",
        "decl": tool.digest,
    }
    yield StepStarted(
        **here, cursor=step, trigger="tick", message=_raw({"parts": [{"text": f"tick {step}"}]})
    )
    yield AttemptStarted(**here, attempt=1, delivery=f"delivery-{number}-{step}")
    yield ModelAnswered(
        **here,
        agent="clerk",
        ordinal=0,
        request=RequestDigests(instruction=other, tools=other, contents=other, settings=other),
        response=_raw(
            {
                "content": {
                    "role": "model",
                    "parts": [{"function_call": {"name": tool.tool, "args": args}}],
                },
                "usage_metadata": {"prompt_token_count": 812, "candidates_token_count": 41},
            }
        ),
    )
    if acts:
        yield EffectClaimed(
            **here,
            **call,
            key=key,
            fingerprint=found.fingerprint,
            args=_raw(args),
            owner="worker-1",
        )
        yield EffectCommitted(
            run=run, at=here["at"], v=here["v"], key=key, result=_raw({"ok": True, **args})
        )
    else:
        yield ToolRead(**here, **call, key=key, args=_raw(args), result=_raw({"known": True}))
    yield AttemptEnded(**here, attempt=1, outcome="done")
    yield CursorAdvanced(**here, cursor=step + 1, effects=(key,) if acts else ())


def _raw(value: object) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(value))


def _at(number: int, step: int) -> str:
    moment = _START + timedelta(hours=number, minutes=step)
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
