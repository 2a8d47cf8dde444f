"""Options that several commands share, and how their text becomes values."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Final, TypeAlias

import typer

from backstop.core.divergence import Kind
from backstop.errors import UsageError
from backstop.gate.request import MOST_REPEATS, Runtime, SandboxKind

CONFIG_FILE: Final = Path("backstop.yaml")


class Format(StrEnum):
    """How a verdict is told."""

    TEXT = "text"
    JSON = "json"


ConfigFile: TypeAlias = Annotated[
    Path, typer.Option("--config", metavar="FILE", help="The configuration.")
]
MaybeConfigFile: TypeAlias = Annotated[
    Path | None,
    typer.Option("--config", metavar="FILE", help="The configuration; else what the files say."),
]
NearConfigFile: TypeAlias = Annotated[
    Path | None,
    typer.Option("--config", metavar="FILE", help="The configuration; else the nearest one."),
]
AgentName: TypeAlias = Annotated[
    str | None, typer.Option("--agent", metavar="NAME", help="Which agent of the configuration.")
]
StoreUrl: TypeAlias = Annotated[
    str | None,
    typer.Option("--store", metavar="URL", help="The store; else `store` of the configuration."),
]
FailOn: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--fail-on",
        metavar="KINDS",
        help="Kinds that block: duplicate,mutated,missing,extra.",
    ),
]
AllowEmpty: TypeAlias = Annotated[
    bool, typer.Option("--allow-empty", help="Nothing to compare is a pass.")
]
Candidate: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--candidate", metavar="FOLDER", help="The new version's folder; else the config's."
    ),
]
Base: TypeAlias = Annotated[
    Path | None,
    typer.Option("--base", metavar="FOLDER", help="The version that runs now: checkout or folder."),
]
SandboxOption: TypeAlias = Annotated[
    SandboxKind | None,
    typer.Option("--sandbox", metavar="KIND", help="Where code runs: process, docker or none."),
]
RuntimeOption: TypeAlias = Annotated[
    Runtime | None,
    typer.Option(
        "--runtime", metavar="KIND", help="Whose containers: docker, podman; none: a process."
    ),
]
CandidatePython: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--candidate-python", metavar="PATH", help="Interpreter with the new version's packages."
    ),
]
BasePython: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--base-python", metavar="PATH", help="Interpreter with the packages of what runs now."
    ),
]
ChangedOnly: TypeAlias = Annotated[
    bool, typer.Option("--changed-only", help="Carry forward agents that the change passes by.")
]
Repeat: TypeAlias = Annotated[
    int,
    typer.Option(
        "--repeat",
        min=1,
        max=MOST_REPEATS,
        metavar="N",
        show_default=False,
        help="Replays, with other clock and chance.",
    ),
]
CacheDir: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--cache-dir", metavar="FOLDER", help="Keep replays here, sealed by BACKSTOP_CACHE_KEY."
    ),
]
CassetteFile: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--cassette", metavar="FILE", help="Where a live model's answers are, and are kept."
    ),
]
Offline: TypeAlias = Annotated[
    bool, typer.Option("--offline", help="Ask no model: what the cassette lacks is unknown.")
]
Output: TypeAlias = Annotated[
    Path | None,
    typer.Option("--output", metavar="FILE", help="Write the report to this file too."),
]
LedgerFile: TypeAlias = Annotated[
    Path, typer.Argument(metavar="FILE", help="A ledger: .jsonl or .jsonl.zst.")
]
RightAgent: TypeAlias = Annotated[
    str | None, typer.Option("--agent", metavar="NAME", help="The agent whose ledger it must be.")
]
OtherFile: TypeAlias = Annotated[
    Path | None, typer.Option("--out", metavar="FILE", help="Write here and leave FILE as it is.")
]
SignKey: TypeAlias = Annotated[
    Path | None,
    typer.Option("--key", metavar="FILE", help="A private key (PEM); else BACKSTOP_SIGNING_KEY."),
]
Epoch: TypeAlias = Annotated[
    int, typer.Option("--epoch", metavar="N", min=0, help="Epoch of what is signed.")
]
TrustedKeys: TypeAlias = Annotated[
    Path | None,
    typer.Option("--trusted-keys", metavar="FILE", help="Demand a signature by one of these keys."),
]
HighWater: TypeAlias = Annotated[
    Path | None,
    typer.Option("--high-water", metavar="FILE", help="Demand what was seen before; kept here."),
]
ReportFormat: TypeAlias = Annotated[
    Format, typer.Option("--format", metavar="text|json", help="Form of the report.")
]


def kinds(text: str) -> frozenset[Kind]:
    """The kinds in ``duplicate,missing``. Raises `UsageError` for a word that is none."""
    chosen: set[Kind] = set()
    for word in text.split(","):
        try:
            chosen.add(Kind(word.strip().upper()))
        except ValueError:
            known = ", ".join(kind.value.lower() for kind in Kind)
            raise UsageError(
                f"--fail-on: {word.strip()!r} is no kind of divergence; choose from {known}"
            ) from None
    return frozenset(chosen)


def keep_apart(output: Path | None, *inputs: Path | str | None, option: str) -> None:
    """Raises `UsageError` if `output` is one of the files that the command reads.

    A report in the place of a ledger cannot be taken back.
    """
    if output is None or not output.is_file():
        return
    for given in inputs:
        if given is not None and Path(given).exists() and output.samefile(given):
            raise UsageError(f"{option}: {output} is a file that is read; name another")


def pairs(texts: list[str], *, option: str) -> dict[str, str]:
    """The pairs in ``["trial=0"]``. Raises `UsageError`."""
    found: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise UsageError(f"{option}: {text!r} is no FIELD=VALUE")
        if name in found:
            raise UsageError(f"{option}: {name!r} is given twice")
        found[name] = value
    return found


def moment(text: str, *, option: str) -> datetime:
    """The instant that `text` names. Raises `UsageError` for no RFC 3339 time with an offset."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        found = None
    if found is None or found.tzinfo is None:
        raise UsageError(f"{option}: {text!r} is no RFC 3339 time with an offset")
    return found
