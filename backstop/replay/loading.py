"""Loads an agent in a sandbox to see what it is made of; nothing of it is run."""

from __future__ import annotations

import contextlib
import re
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import msgspec

from backstop.adk.escapes import Way
from backstop.errors import SandboxError, WireError
from backstop.ports import Conversation, Sandbox
from backstop.replay.driver import Driver
from backstop.replay.missing import Failure, Missing, missing
from backstop.replay.reader import read_message
from backstop.replay.wire import EscapeSeen, Fault, Ready

_PLACE: Final = re.compile(r"(.+\.py):([0-9]{1,9})")

LineAt = Callable[[Path, int], str]
"""The text of a source file's line, empty where there is none to read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NotLoaded:
    """An agent that does not load: how that ended, and what it lacks."""

    failure: Failure
    missing: Missing


def load(sandbox: Sandbox, folder: Path, *, line_at: LineAt) -> Ready | NotLoaded:
    """What the agent in `folder` is made of, or why it cannot be told.

    What its import tried and was barred from is among its escapes. Raises `SandboxError` where
    not even the interpreter can be started.
    """
    overheard = _Overheard(sandbox.start(folder))
    driver = Driver(overheard)
    try:
        ready = driver.ready()
    except (SandboxError, WireError) as error:
        driver.close()
        failure = replace(
            _failure(error, overheard.last, folder, line_at), attempts=tuple(driver.escapes)
        )
        return NotLoaded(failure=failure, missing=missing(failure))
    except BaseException:
        driver.close()
        raise
    driver.quit()
    tried = [EscapeSeen(kind=Way.IMPORT_TIME, where="import", detail=it) for it in driver.escapes]
    return msgspec.structs.replace(ready, escapes=[*ready.escapes, *tried])


class _Overheard:
    """A conversation whose last line is kept: a fault's words are cut short where they are told."""

    def __init__(self, conversation: Conversation) -> None:
        self._conversation = conversation
        self.last = b""

    def send(self, line: bytes) -> None:
        self._conversation.send(line)

    def receive(self) -> bytes | None:
        line = self._conversation.receive()
        self.last = line or b""
        return line

    def close(self) -> None:
        self._conversation.close()


def _failure(
    error: SandboxError | WireError, last: bytes, folder: Path, line_at: LineAt
) -> Failure:
    with contextlib.suppress(WireError):
        if isinstance(fault := read_message(last), Fault):
            place = _PLACE.fullmatch(fault.where)
            line = "" if place is None else line_at(folder / place[1], int(place[2]))
            return Failure(
                slug=error.slug,
                detail=_from_here(fault.detail.rstrip(": "), folder),
                where=fault.where,
                line=line,
                python=_python_of(folder),
            )
    return Failure(slug=error.slug, detail=str(error))


def _checkout(folder: Path) -> tuple[Path, ...]:
    """The agent's folder and those above it, up to where its history begins, if it has one."""
    above = (folder, *folder.parents)
    for number, place in enumerate(above, start=1):
        if (place / ".git").exists():
            return above[:number]
    return above[:1]


def _from_here(text: str, folder: Path) -> str:
    """`text` without where the checkout lies: the same repository makes the same words."""
    for number, place in enumerate(_checkout(folder.resolve())):
        text = text.replace(f"{place}/", "../" * number)
    return text


def _python_of(folder: Path) -> str:
    """Which Python the nearest project asks for; empty where none says so."""
    for place in _checkout(folder.resolve()):
        with contextlib.suppress(OSError, ValueError, RecursionError):
            told = tomllib.loads((place / "pyproject.toml").read_text("utf-8")).get("project")
            asked = told.get("requires-python") if isinstance(told, dict) else None
            return asked if isinstance(asked, str) else ""
    return ""
