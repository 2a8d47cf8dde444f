"""The baseline: what was known when Backstop was adopted, so that only new findings block.

Known findings are named by their fingerprints, with how often each was there: one more of the
same is new. Names of tools, runs and steps stand beside them for the reader; values do not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

import msgspec

from backstop.core.canon import NotCanonical, canonical, parse
from backstop.core.divergence import Divergence
from backstop.errors import ConfigError

FORMAT: Final = "backstop.baseline/1"

_MOST: Final = 1 << 26
"""Bytes of the largest baseline: some 300,000 findings."""


class Known(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A finding that was there `count` times; all but `fingerprint` and `count` is for people."""

    fingerprint: str
    count: int
    kind: str
    tool: str
    run: str
    step: str


class AgentBaseline(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What was known of one agent: `at` is when that was written, RFC 3339, by whom.

    `ledger` is the digest of the ledger that it was found on.
    """

    at: str
    by: str
    ledger: str
    findings: tuple[Known, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselineUse:
    """What a baseline did for one agent.

    `date` is the day it was written, `by` whom. Of the `findings` that it holds, `known` were
    found again and do not block, `gone` are found no more. `added` were put in by the pull
    request under judgement itself; without `counted` those are left out of `findings`.
    """

    date: str
    by: str
    ledger: str
    findings: int = 0
    known: int = 0
    gone: int = 0
    added: int = 0
    counted: bool = True


def read(data: bytes, *, name: str) -> dict[str, AgentBaseline]:
    """The baselines of a file, by agent; `name` stands in messages.

    Raises `ConfigError` (``baseline-damaged``) for whatever `write` cannot have written.
    """
    try:
        if len(data) > _MOST:
            raise _damaged(name, f"larger than {_MOST} bytes")
        told = msgspec.convert(parse(data), type=_File, strict=True)
    except (NotCanonical, msgspec.ValidationError) as fault:
        raise _damaged(name, str(fault)) from None
    if told.format != FORMAT:
        raise ConfigError(
            f"{name}: written in form {told.format!r}, this Backstop reads {FORMAT!r}; use the "
            "version of Backstop that wrote it, or write it anew",
            slug="baseline-damaged",
        )
    for agent, baseline in told.agents.items():
        _check(agent, baseline, name)
    return told.agents


class _File(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    format: str
    agents: dict[str, AgentBaseline]


def _check(agent: str, baseline: AgentBaseline, name: str) -> None:
    seen: set[str] = set()
    for known in baseline.findings:
        if known.count < 1:
            raise _damaged(name, f"{agent}: {known.fingerprint} was there {known.count} times")
        if known.fingerprint in seen:
            raise _damaged(name, f"{agent}: {known.fingerprint} stands twice")
        seen.add(known.fingerprint)
    if _day(baseline) is None:
        raise _damaged(name, f"{agent}: {baseline.at!r} is no time")


def _day(baseline: AgentBaseline) -> str | None:
    try:
        at = datetime.fromisoformat(baseline.at)
    except ValueError:
        return None
    return at.astimezone(UTC).date().isoformat() if at.tzinfo else None


def _damaged(name: str, why: str) -> ConfigError:
    return ConfigError(
        f"{name}: no baseline that Backstop wrote: {why}; restore it, or remove it and run "
        "`backstop baseline write`",
        slug="baseline-damaged",
    )


def write(agents: Mapping[str, AgentBaseline]) -> bytes:
    """The file of these baselines: a finding a line, sorted, so that a change shows as it is."""
    parts = [
        f"  {_text(agent)}: {{\n"
        f'   "at": {_text(one.at)}, "by": {_text(one.by)}, "ledger": {_text(one.ledger)},\n'
        f'   "findings": [{",".join(map(_line, one.findings))}\n   ]\n  }}'
        for agent, one in sorted(agents.items())
    ]
    told = ",\n".join(parts)
    return f'{{\n "format": {_text(FORMAT)},\n "agents": {{\n{told}\n }}\n}}\n'.encode()


def _line(known: Known) -> str:
    return f"\n    {canonical(msgspec.to_builtins(known))}"


def _text(value: str) -> str:
    return canonical(value)


def taken(found: Iterable[Known], *, at: datetime, by: str, ledger: str) -> AgentBaseline:
    """A baseline of what was found; equal findings become one, their counts added up."""
    merged: dict[str, Known] = {}
    for one in found:
        before = merged.get(one.fingerprint)
        count = one.count + (0 if before is None else before.count)
        merged[one.fingerprint] = msgspec.structs.replace(one, count=count)
    known = sorted(
        merged.values(), key=lambda one: (one.kind, one.run, one.step, one.tool, one.fingerprint)
    )
    stamp = at.astimezone(UTC).replace(microsecond=0).isoformat()
    return AgentBaseline(at=stamp, by=by, ledger=ledger, findings=tuple(known))


def shrunk(held: AgentBaseline, now: AgentBaseline, unspoken: Iterable[str] = ()) -> AgentBaseline:
    """What is `held` and still there `now`, each at most as often as it was held.

    Of the runs in `unspoken` nothing can be said, so what is held of them stays.
    """
    left, silent = counts(now), set(unspoken)
    kept = [
        one
        if one.run in silent
        else msgspec.structs.replace(one, count=min(one.count, left[one.fingerprint]))
        for one in held.findings
        if one.run in silent or left[one.fingerprint]
    ]
    return msgspec.structs.replace(now, findings=tuple(kept))


def grown(held: AgentBaseline, now: AgentBaseline, unspoken: Iterable[str] = ()) -> AgentBaseline:
    """All that is there `now`, and what is `held` of the runs in `unspoken`."""
    known, silent = counts(now), set(unspoken)
    kept = [one for one in held.findings if one.run in silent and one.fingerprint not in known]
    return msgspec.structs.replace(now, findings=(*now.findings, *kept))


def counts(baseline: AgentBaseline | None) -> Counter[str]:
    """How often each finding was there, by fingerprint."""
    known = () if baseline is None else baseline.findings
    return Counter({one.fingerprint: one.count for one in known})


def added(head: AgentBaseline | None, base: AgentBaseline | None) -> int:
    """How many findings `head` knows beyond those of `base`."""
    return (counts(head) - counts(base)).total()


def met(baseline: AgentBaseline, standing: Sequence[Divergence]) -> set[int]:
    """Which of the `standing` findings are known, by place: each as often as it was there."""
    left = counts(baseline)
    known: set[int] = set()
    for place, one in enumerate(standing):
        if left[one.fingerprint] > 0:
            left[one.fingerprint] -= 1
            known.add(place)
    return known


def gone(
    baseline: AgentBaseline, divergences: Iterable[Divergence], unspoken: Iterable[str]
) -> int:
    """How many known findings are there no more, whatever else tempers those that are.

    Of the runs in `unspoken` nothing can be said.
    """
    told = Counter(one.fingerprint for one in divergences)
    silent = set(unspoken)
    return sum(
        max(0, known.count - told[known.fingerprint])
        for known in baseline.findings
        if known.run not in silent
    )


def day(baseline: AgentBaseline) -> str:
    """The day on which a baseline that was read was written, in UTC."""
    return _day(baseline) or baseline.at
