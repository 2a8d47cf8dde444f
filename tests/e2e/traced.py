"""What the guard tells tracers: run by `test_tracing.py`, in a process of its own.

Whoever begins to trace in a process does so for good: every test after these would find its
rows traced.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from backstop.adapters.memory import MemoryStore
from backstop.core.events import (
    CallAnswered,
    EffectClaimed,
    EffectCommitted,
    ToolRead,
)
from tests.e2e.test_plugin_refusals import LOOK, Clock, Fixed, Moody, station
from tests.e2e.till import PAY, Till, says

# The framework warns about its own experimental features.
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture
def till(tmp_path: Path) -> Till:
    return Till(folder=tmp_path)


@pytest.fixture(scope="module")
def spans() -> InMemorySpanExporter:
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    return exporter


def said(span: ReadableSpan) -> dict[str, Any]:
    """What the guard put on a span."""
    return {
        name: value
        for name, value in (span.attributes or {}).items()
        if name.startswith("backstop.")
    }


def test_rows_name_trace_and_span_and_the_span_names_the_row(
    till: Till, spans: InMemorySpanExporter
) -> None:
    spans.clear()
    till.chat(till.agent(PAY, LOOK, says("x"), PAY, says("y")), "pay", "again")
    marked = [span for span in spans.get_finished_spans() if "backstop.key" in said(span)]
    assert [span.name for span in marked] == ["execute_tool pay"] * 2
    (claimed,), (answered,) = till.rows(EffectClaimed), till.rows(CallAnswered)
    (read,) = till.rows(ToolRead)
    for span, row in zip(marked, (claimed, answered), strict=True):
        assert row.trace == f"{span.context.trace_id:032x}"
        assert row.span == f"{span.context.span_id:016x}"
    assert said(marked[0]) == {
        "backstop.key": claimed.key,
        "backstop.outcome": "executed",
        "backstop.fence": 1,
        "backstop.run": "till:u:c1",
        "backstop.step": "s0",
    }
    assert said(marked[1])["backstop.outcome"] == "recorded"
    assert read.span
    assert len(till.rows(EffectCommitted)) == 1
    assert [type(row).__name__ for row in till.events() if not (row.trace and row.span)] == []


def test_the_span_of_a_refused_call_says_so(till: Till, spans: InMemorySpanExporter) -> None:
    spans.clear()
    store = Moody(MemoryStore(clock=Clock()))
    store.down = {"claim"}
    till.chat(till.agent(PAY, says("x")), "pay", plugins=[Fixed(station(store))])
    (marked,) = [said(span) for span in spans.get_finished_spans() if said(span)]
    assert marked["backstop.outcome"] == "refused"
