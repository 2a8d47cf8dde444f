"""Telemetry that nobody receives, left out: a quarter of a replay's time, and nothing else.

This replaces internals of the framework, so it holds three conditions: the version is one
that this was tried on, our own agent's event log is the same with it and without it, and
the candidate has set up no telemetry of its own that could see the difference.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from types import ModuleType
from typing import Any, Final

TRIED_ON: Final = frozenset({"2.13.0"})
_NOBODY: Final = frozenset({"NoOpTracerProvider", "ProxyTracerProvider"})
_NO_LOGS: Final = frozenset({"NoOpLoggerProvider", "ProxyLoggerProvider"})
_NO_METERS: Final = frozenset({"NoOpMeterProvider", "_ProxyMeterProvider"})


class QuietTelemetry:
    """The framework's telemetry, which can be switched off and on again."""

    def __init__(self) -> None:
        self._originals: list[tuple[ModuleType, str, Any]] = []

    def on(self) -> None:
        """Leave spans, log records and metrics out from now on."""
        from google.adk.telemetry import _instrumentation, _metrics, tracing
        from opentelemetry import trace

        @contextlib.contextmanager
        def no_span(*_args: Any, **_kwargs: Any) -> Iterator[Any]:
            yield tracing.GenerateContentSpan(trace.INVALID_SPAN)

        self._replace(_instrumentation, "stream_in_scope", _as_it_is)
        self._replace(tracing, "_use_native_generate_content_span_stable_semconv", no_span)
        for name in dir(_metrics):
            if name.startswith("record_"):
                self._replace(_metrics, name, _nothing)

    def off(self) -> None:
        """Put everything back."""
        for module, name, original in reversed(self._originals):
            setattr(module, name, original)
        self._originals.clear()

    def _replace(self, module: ModuleType, name: str, by: Callable[..., Any]) -> None:
        self._originals.append((module, name, getattr(module, name)))
        setattr(module, name, by)


def quiet_telemetry(version: str, freeze: Callable[[], None]) -> QuietTelemetry | None:
    """The switch, off, if our own agent's event log is the same with telemetry and without.

    `freeze` puts time, ids and chance back to where they were, before each rehearsal.
    """
    if version not in TRIED_ON:
        return None
    from .rehearsal import rehearse

    quiet = QuietTelemetry()
    try:
        freeze()
        loud = rehearse()
        quiet.on()
        freeze()
        same = rehearse() == loud
    except Exception:  # noqa: BLE001 - an internal that is not what it was: leave all as it is
        return None
    finally:
        quiet.off()
    return quiet if same else None


def nobody_listens() -> bool:
    """Whether the candidate has set up no receiver of spans, log records or metrics."""
    from opentelemetry import _logs, metrics, trace

    return (
        type(trace.get_tracer_provider()).__name__ in _NOBODY
        and type(_logs.get_logger_provider()).__name__ in _NO_LOGS
        and type(metrics.get_meter_provider()).__name__ in _NO_METERS
    )


async def _as_it_is(_context: Any, stream: AsyncGenerator[Any, None]) -> AsyncIterator[Any]:
    async with contextlib.aclosing(stream) as events:
        async for event in events:
            yield event


def _nothing(*_args: Any, **_kwargs: Any) -> None:
    """Record nothing."""
