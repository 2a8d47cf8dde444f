"""What `backstop init` would write, compared with what is there, and the writing of it."""

from __future__ import annotations

import contextlib
import difflib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from backstop.adapters.chat import Selection
from backstop.adapters.files import write_atomic
from backstop.adapters.process import interpreter
from backstop.config import Config, loads
from backstop.errors import BackstopError, ConfigError, UsageError
from backstop.reports.proposal import WORKFLOW, config_text, ledger_of
from backstop.wiring.importing import Imported, Source, import_record
from backstop.wiring.redacting import redaction_key
from backstop.wiring.surveying import Search, Surveyed, survey

CONFIG: Final = "backstop.yaml"
WORKFLOW_FILE: Final = ".github/workflows/backstop.yml"

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
"""When a run began of which a record does not say: the same whenever it is imported."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A record to import: its kind, and the file or URL that holds it."""

    kind: str
    place: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What was found, and the files to write for it by their path from the root."""

    root: Path
    surveyed: Surveyed
    files: Mapping[str, str]
    config: Config = field(repr=False)

    def changes(self) -> dict[str, str]:
        """For each file that is there and says something else: how much of it would differ."""
        found: dict[str, str] = {}
        for path, text in self.files.items():
            before = _before(self.root / path)
            if before is not None and before != text:
                marks = [line[0] for line in _compared(path, before, text) if line[:3].strip("-+")]
                found[path] = f"{marks.count('+')} lines more, {marks.count('-')} lines less"
        return found

    def is_done(self) -> bool:
        """Does every file stand there already, as it would be written?"""
        return all(_before(self.root / path) == text for path, text in self.files.items())

    def diff(self) -> str:
        """What would change, as a unified diff; empty if nothing would."""
        lines: list[str] = []
        for path, text in self.files.items():
            lines += _compared(path, _before(self.root / path), text)
        return "".join(lines)


def plan(search: Search, *, record: Record | None = None) -> Plan:
    """What `backstop init` would write for the agents that it finds; nothing is written.

    `record` is what will be imported. Raises what `survey` raises, and `UsageError` for a record
    that could be several agents'.
    """
    search = _as_set_up(search)
    surveyed = survey(search)
    agents = surveyed.agents
    if record is not None and len(agents) != 1:
        names = ", ".join(agent.name for agent in agents)
        raise UsageError(f"--import: whose record is it? Choose one with --agent: {names}")
    has = record is not None
    agents = tuple(
        replace(one, has_ledger=has or (search.root / ledger_of(one.name)).is_file())
        for one in agents
    )
    text = config_text(agents, python=_python(search), env=search.env)
    # What our own reader does not take is never written.
    config = loads(text, name=CONFIG, root=search.root)
    return Plan(
        root=search.root,
        surveyed=surveyed,
        files={CONFIG: text, WORKFLOW_FILE: WORKFLOW},
        config=config,
    )


def _as_set_up(search: Search) -> Search:
    """With the variables and the interpreter of an earlier setup, as far as none is named now."""
    text = _before(search.root / CONFIG)
    if text is None:
        return search
    try:
        known = loads(text, name=CONFIG, root=search.root).sandbox
    except ConfigError:
        return search  # what it says has no meaning; the comparison shows it
    return replace(search, env={**known.env, **search.env}, python=search.python or known.python)


def _python(search: Search) -> str | None:
    """The interpreter as the configuration names it: from its own folder, if it lies there."""
    if search.python is None or "/" not in search.python:
        return search.python
    python = interpreter(search.python)
    with contextlib.suppress(ValueError):
        return Path(python).relative_to(os.path.normpath(search.root.absolute())).as_posix()
    return python


def write(plan: Plan, *, force: bool, record: Record | None) -> Imported | None:
    """Write the files of a plan, and the ledger of a record, which comes first.

    Raises `BackstopError` (``init-exists``) where a file is there and differs, unless `force`;
    ``file-unwritable``, and what the import raises. Whatever it raises, no file was
    touched but those that were whole.
    """
    if not force and (changes := plan.changes()):
        told = "; ".join(f"{path} ({what})" for path, what in changes.items())
        raise BackstopError(
            f"{plan.root} has been set up before, and would change: {told}; look with --diff, and "
            "write with --force",
            slug="init-exists",
        )
    for path in plan.files:
        _prepare(plan.root, path)
    summary = None if record is None else _imported(plan, record, force=force)
    for path, text in plan.files.items():
        if _before(plan.root / path) != text:
            write_atomic(plan.root / path, text.encode())
    return summary


def _imported(plan: Plan, record: Record, *, force: bool) -> Imported:
    agent = plan.config.agent(None)
    path = ledger_of(agent.name)
    out = plan.root / path
    if out.exists() and not force:
        raise BackstopError(
            f"{out} is there already; import into it with --force, or to another place with "
            "`backstop ledger import`",
            slug="init-exists",
        )
    _prepare(plan.root, path)
    source = Source(
        place=record.place,
        namespace=agent.namespace,
        declarations=agent.declarations,
        selection=Selection(where={}, run_field=None),
        at=_EPOCH,
        key=redaction_key(),
    )
    return import_record(record.kind, source, out)


def _prepare(root: Path, path: str) -> None:
    """Make the folder that a file goes into. Raises `BackstopError` for one that leads out."""
    file = root / path
    try:
        inside = file.resolve().is_relative_to(root.resolve())
        if inside:
            file.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BackstopError(
            f"{file}: cannot be written: {error.strerror or error}", slug="file-unwritable"
        ) from None
    if not inside:
        raise BackstopError(
            f"{file}: is a link that leads out of {root}; remove it", slug="file-unwritable"
        )


def _before(file: Path) -> str | None:
    """The text of a file as it is; None for one that is not there."""
    try:
        return file.read_bytes().decode("utf-8", "replace")
    except OSError:
        return None


def _compared(path: str, before: str | None, after: str) -> list[str]:
    return list(
        difflib.unified_diff(
            [] if before is None else _lines(before),
            _lines(after),
            fromfile="/dev/null" if before is None else f"a/{path}",
            tofile=f"b/{path}",
        )
    )


def _lines(text: str) -> list[str]:
    lines = text.splitlines(keepends=True)
    if lines and not lines[-1].endswith("\n"):
        lines[-1] += "\n\\ No newline at end of file\n"
    return lines
