"""How runs are configured and how their event logs are digested: alike for all of them."""

from __future__ import annotations

import hashlib
from typing import Any

from google.adk.agents.run_config import RunConfig


def run_config() -> RunConfig:
    """No bound on model calls, and the cheapest telemetry that changes nothing."""
    # The record bounds how often a model is asked; the framework's own bound would end a
    # long run that production was given a larger one for.
    try:
        from google.adk.telemetry.context import TelemetryConfig
    except ImportError:
        return RunConfig(max_llm_calls=0)
    telemetry = TelemetryConfig(genai_semconv_stability_opt_in="stable")
    return RunConfig(max_llm_calls=0, telemetry=telemetry)


def log_digest(events: list[Any]) -> str:
    """SHA-256 over the events as the framework writes them, one a line."""
    digest = hashlib.sha256()
    for event in events:
        digest.update(_event_text(event).encode("utf-8", "backslashreplace"))
        digest.update(b"\n")
    return digest.hexdigest()


def _event_text(event: Any) -> str:
    try:
        return str(event.model_dump_json(exclude_none=True))
    except ValueError:  # a payload that only the candidate knows how to spell
        return ascii(event)
