"""Evalsets, conformance recordings and traces where they lie: in a file, or in a folder of them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from backstop.adapters.chat import Selection
from backstop.adapters.files import read_bytes
from backstop.adapters.importing.anthropic import read_messages
from backstop.adapters.importing.conformance import read_recordings
from backstop.adapters.importing.contents import Tools
from backstop.adapters.importing.conversation import Conversation
from backstop.adapters.importing.evalsets import read_evalset
from backstop.adapters.importing.otlp import read_traces
from backstop.adapters.told import ImportRefused


def evalsets_at(place: str, *, tools: Tools, at: datetime) -> Iterator[Conversation]:
    """The cases of an evalset, or of all in a folder: then a run is named by file and case.

    Raises `ImportRefused` as `read_evalset` does, ``import-no-match`` for a folder without any,
    and `BackstopError` for a file that cannot be read; so do all of these.
    """
    for path, inside in _files(place, "*.test.json", "*.evalset.json"):
        folder = f"{inside}/" if inside else ""
        yield from read_evalset(read_bytes(path), name=str(path), folder=folder, tools=tools, at=at)


def recordings_at(place: str, *, tools: Tools, at: datetime) -> Iterator[Conversation]:
    """The runs of ``adk conformance`` in a file or a folder, each named by its case's folder."""
    root = Path(place)
    for path, inside in _files(place, "generated-recordings*.yaml"):
        case = path.resolve().parent.name if root.is_file() else Path(inside).parent.as_posix()
        streamed = "-sse" if path.stem.endswith("-sse") else ""
        yield read_recordings(
            read_bytes(path),
            name=str(path),
            run=(root.resolve().name if case == "." else case) + streamed,
            tools=tools,
            at=at,
        )


def traces_at(place: str, *, tools: Tools) -> Iterator[Conversation]:
    """The conversations in OTLP JSON files; a conversation may lie in several of them."""
    files = (
        (str(path), read_bytes(path)) for path, _ in _files(place, "*.json", "*.jsonl", "*.ndjson")
    )
    yield from read_traces(files, tools=tools)


def messages_at(place: str, *, selection: Selection, at: datetime) -> Iterator[Conversation]:
    """The conversations in a file of Anthropic's messages."""
    yield from read_messages(read_bytes(Path(place)), name=place, selection=selection, at=at)


def _files(place: str, *patterns: str) -> Iterator[tuple[Path, str]]:
    """The file itself, or the files in a folder with their paths in it, in order."""
    root = Path(place)
    if not root.is_dir():
        yield root, ""
        return
    found = sorted({path for pattern in patterns for path in root.rglob(pattern)})
    if not found:
        raise ImportRefused(
            f"{place}: holds no {' or '.join(patterns)}; name the folder of such files",
            slug="import-no-match",
        )
    for path in found:
        yield path, path.relative_to(root).as_posix()
