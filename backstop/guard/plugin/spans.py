"""What the guard says to OpenTelemetry, and what it learns from it."""

from __future__ import annotations

from typing import Final

from opentelemetry import trace as otel

from backstop.guard.calls import Call

KEY: Final = "backstop.key"
OUTCOME: Final = "backstop.outcome"
"""``executed`` where the call was made and committed now; else what the guard answered."""
REFUSED: Final = "refused"
"""The outcome of a call that could not be guarded, or that a person declined."""
FENCE: Final = "backstop.fence"
RUN: Final = "backstop.run"
STEP: Final = "backstop.step"


def ids() -> dict[str, str]:
    """Trace and span of whoever runs, in hex, as rows keep them; empty where nobody traces."""
    span = otel.get_current_span().get_span_context()
    if not span.is_valid:
        return {}
    return {"trace": f"{span.trace_id:032x}", "span": f"{span.span_id:016x}"}


def mark(call: Call, outcome: str, *, fence: int) -> None:
    """Put what became of a call on the current span, which is the tool's; 0 is no fence."""
    if not call.trace:  # nobody traces
        return
    span = otel.get_current_span()
    if not span.is_recording():
        return
    span.set_attribute(KEY, call.named.key)
    span.set_attribute(OUTCOME, outcome)
    span.set_attribute(RUN, call.attempt.run)
    span.set_attribute(STEP, call.attempt.step)
    if fence:
        span.set_attribute(FENCE, fence)
