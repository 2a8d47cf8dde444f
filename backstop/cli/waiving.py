"""``backstop waive``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from backstop.adapters.files import read_bytes, write_atomic
from backstop.cli.author import visible
from backstop.config import Config, load
from backstop.config import waivers as waivers_file
from backstop.config.reading import text_of
from backstop.config.waiving import appended
from backstop.core.divergence import Kind
from backstop.core.unshown import Lack
from backstop.core.waivers import ByFingerprint, Waiver
from backstop.errors import UsageError
from backstop.reports.document import read
from backstop.reports.escape import plain
from backstop.reports.form import VerdictDocument

_WHOLE: Final = re.compile(r"[0-9a-f]{32}", re.ASCII)
_PART: Final = re.compile(r"[0-9a-f]{8,32}", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A waiver as it is asked for; `verdict` is the file of a report that holds the finding."""

    fingerprint: str
    reason: str
    author: str
    days: int
    count: int
    kind: str | None = None
    agent: str | None = None
    verdict: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Finding:
    """What is known of the finding: all that a report says, or no more than was asked."""

    fingerprint: str
    agent: str
    kind: Kind | Lack | None
    said: str = ""
    times: int = 1


def waive(asked: Asked, *, config: Path, now: datetime) -> str:
    """Append a waiver to the file beside `config`; what it waives, in a few lines.

    Raises `UsageError` (``waiver-unknown``, ``waiver-known``, ``usage``) and `ConfigError`.
    """
    known = load(config)
    file = config.parent / waivers_file.FILE
    today = now.astimezone(UTC).date()
    finding = _reported(asked) if asked.verdict is not None else _named(asked, known)
    waiver = Waiver(
        names=ByFingerprint(fingerprint=finding.fingerprint),
        agent=known.agent(finding.agent).name,
        reason=_reason(asked.reason),
        author=asked.author,
        expires=today + timedelta(days=_days(asked.days, known)),
        kind=finding.kind,
        count=_count(asked.count),
    )
    text = text_of(file, missing="write it") if file.exists() else ""
    for one in waivers_file.loads(text, name=str(file)):
        if one.names == waiver.names and today <= one.expires:
            raise UsageError(
                f"{plain(str(file.parent / one.place))}: waives {finding.fingerprint} already, "
                f"until {one.expires}: edit it there",
                slug="waiver-known",
            )
    write_atomic(file, appended(text, waiver, name=str(file)).encode())
    return "\n".join(_told(waiver, finding, file))


def _reported(asked: Asked) -> _Finding:
    """The finding as the report has it: one that is not in there is not waived."""
    path = asked.verdict or Path()
    report = read(read_bytes(path), name=str(path))
    found = [one for one in _findings(report) if one.fingerprint == asked.fingerprint] or [
        one
        for one in _findings(report)
        if _PART.fullmatch(asked.fingerprint) and one.fingerprint.startswith(asked.fingerprint)
    ]
    names = {one.fingerprint for one in found}
    if len(names) != 1:
        what = "no finding" if not names else f"{len(names)} findings"
        raise UsageError(
            f"{path}: has {what} {asked.fingerprint!r}; take a fingerprint as the report writes "
            "it, or its first 8 letters",
            slug="waiver-unknown",
        )
    one = found[0]
    _agree("--agent", asked.agent, one.agent)
    _agree("--kind", asked.kind and asked.kind.upper(), one.kind or "")
    return replace(one, times=len(found))


def _findings(report: VerdictDocument) -> Iterator[_Finding]:
    for agent in report.agents:
        for one in agent.divergences:
            yield _Finding(
                fingerprint=one.fingerprint,
                agent=agent.agent,
                kind=Kind(one.kind),
                said=f"run {one.run}, step {one.step}: {one.explanation}",
            )
        for lack in agent.coverage.unshown:
            yield _Finding(
                fingerprint=lack.fingerprint,
                agent=agent.agent,
                kind=Lack.UNCOVERED,
                said=lack.told,
            )


def _agree(option: str, said: str | None, found: str) -> None:
    if said is not None and said != found:
        raise UsageError(f"{option}: {said!r}, but the report says {found!r} of this finding")


def _named(asked: Asked, config: Config) -> _Finding:
    if _WHOLE.fullmatch(asked.fingerprint) is None:
        raise UsageError(
            f"{asked.fingerprint!r} is no fingerprint: copy its 32 letters from the report, or "
            "name the report with --verdict and write the first 8"
        )
    return _Finding(
        fingerprint=asked.fingerprint,
        agent=config.agent(asked.agent).name,
        kind=_kind(asked.kind),
    )


def _kind(text: str | None) -> Kind | Lack | None:
    try:
        return waivers_file.kind_of(text and text.upper())
    except ValueError:
        known = ", ".join(kind.value for kind in (*Kind, *Lack))
        raise UsageError(f"--kind: {text!r} is no kind of finding; choose from {known}") from None


def _reason(text: str) -> str:
    reason = " ".join(text.split())
    if not reason:
        raise UsageError("--reason: is blank: say why it may go out all the same")
    if len(reason) > waivers_file.MAX_WORDS:
        raise UsageError(f"--reason: longer than {waivers_file.MAX_WORDS} characters")
    return visible(reason, option="--reason")


def _days(days: int, config: Config) -> int:
    most = config.gate.max_waiver_days
    if not 1 <= days <= most:
        raise UsageError(f"--days: {days} is not within 1 and {most} (gate.max_waiver_days)")
    return days


def _count(count: int) -> int:
    if not 1 <= count <= waivers_file.MAX_COUNT:
        raise UsageError(f"--count: {count} is not within 1 and {waivers_file.MAX_COUNT}")
    return count


def _told(waiver: Waiver, finding: _Finding, file: Path) -> Iterator[str]:
    kind = "" if waiver.kind is None else f"{waiver.kind.value} "
    yield plain(f"{file}: one more waiver, until {waiver.expires}, by {waiver.author}")
    yield plain(f"  {kind}{finding.fingerprint} of {waiver.agent}")
    if finding.said:
        yield plain(f"  {finding.said}")
    yield plain(f"  reason: {waiver.reason}")
    if finding.times > waiver.count:
        yield (
            f"but it is there {finding.times} times, and a waiver of {waiver.count} waives none "
            f"then: write `count: {finding.times}` into it if all are meant"
        )
    yield "next: commit it, and let CODEOWNERS guard the file (docs/waivers.md)"
