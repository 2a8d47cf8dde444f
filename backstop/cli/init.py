"""``backstop init``: an agent's first day."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import typer

from backstop.cli.options import pairs
from backstop.errors import UsageError
from backstop.reports.escape import brief, plain
from backstop.reports.proposal import ledger_of, table, wrapped
from backstop.wiring.importing import IMPORTERS, Imported
from backstop.wiring.initializing import Plan, Record, plan, write
from backstop.wiring.surveying import Search

_GAPS: Final = 240
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}", re.ASCII)


def init(  # noqa: PLR0913 - a command's options are its contract
    *,
    root: Path,
    agents: Sequence[str],
    record: tuple[str, str] | None,
    diff: bool,
    force: bool,
    yes: bool,
    with_tests: bool,
    python: str | None,
    env: list[str],
) -> Iterator[str]:
    """Find agents, propose their declarations and write them; what is to be told, by lines.

    Asks once before it writes, on a terminal only. Raises `BackstopError`.
    """
    search = Search(
        root=root,
        agents=agents,
        with_tests=with_tests,
        python=python,
        env=_variables(env),
    )
    importing = None if record is None else _record(record)
    found = plan(search, record=importing)
    if diff:
        yield from map(plain, found.diff().splitlines())
        return
    yield from _told(found)
    if found.is_done() and record is None:
        yield "nothing to write: all of it is there already"
        return
    if _asks(yes=yes) and not typer.confirm(f"write {', '.join(found.files)}?", default=True):
        yield "nothing was written"
        return
    summary = write(found, force=force, record=importing)
    yield from (f"wrote {path}" for path in found.files)
    if summary is not None:
        yield from _imported(found, summary)
    yield from _next(found, has_record=summary is not None)


def _variables(env: list[str]) -> dict[str, str]:
    given = pairs(env, option="--env")
    for name in given:
        if _VARIABLE.fullmatch(name) is None:
            raise UsageError(f"--env: {name!r} is no name of a variable")
    return given


def _record(told: tuple[str, str]) -> Record:
    kind, place = told
    if kind not in IMPORTERS:
        raise UsageError(
            f"--import: {kind!r} cannot be imported; this version knows: {', '.join(IMPORTERS)}"
        )
    if place.startswith("--"):
        # The next option is no file: it would be lost, and --diff with it.
        raise UsageError(f"--import: {kind} is given, and {place} is no FILE|URL; name it")
    return Record(kind=kind, place=place)


def _asks(*, yes: bool) -> bool:
    return not yes and sys.stdin.isatty() and sys.stdout.isatty()


def _told(found: Plan) -> Iterator[str]:
    agents = found.surveyed.agents
    tools = [tool for agent in agents for tool in agent.tools]
    effects = sum(tool.proposal.effect for tool in tools)
    yield (
        f"found {_count(len(agents), 'agent')}, {_count(len(tools), 'tool')}: "
        f"{_count(effects, 'effect')}, {_count(len(tools) - effects, 'read')}"
    )
    yield ""
    yield from table(agents)
    yield ""
    for note in found.surveyed.notes:
        yield from wrapped(plain(note), lead="note: ")


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _imported(found: Plan, summary: Imported) -> Iterator[str]:
    [name] = found.config.agents
    untold = incomplete(summary.header.gaps or [])
    yield from wrapped(
        f"wrote {ledger_of(name)}: {_count(summary.runs, 'run')}, "
        f"{_count(summary.events, 'event')}, {_count(summary.effects, 'effect')}{untold}"
    )


def incomplete(gaps: Sequence[str]) -> str:
    """What is said of what a record could not tell: gaps that are whole, as many as fit."""
    shown: list[str] = []
    for gap in gaps:
        if shown and len("; ".join([*shown, gap])) > _GAPS:
            break
        shown.append(brief(gap, _GAPS))
    more = len(gaps) - len(shown)
    told = "; ".join([*shown, *([f"and {more} more"] if more else [])])
    return f"; incomplete: {told}" if told else ""


def _next(found: Plan, *, has_record: bool) -> Iterator[str]:
    config = "" if found.root == Path() else f" --config {plain(str(found.root))}/backstop.yaml"
    yield ""
    yield "next: read backstop.yaml: what is wrongly called a read is not compared"
    yield f"      backstop doctor{config}"
    # What a record lets a gate say needs the version that made it.
    yield f"      backstop gate {'--base CHECKOUT' if has_record else '--allow-empty'}{config}"
    if any(agent.lack for agent in found.surveyed.agents):
        yield "      mend what is not loaded, then `backstop init --diff` shows what changes"
