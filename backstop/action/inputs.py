"""The action's inputs: the ``INPUT_*`` variables of the runner, parsed once into one value.

The runner upper-cases a name and keeps its hyphens: ``github-token`` is ``INPUT_GITHUB-TOKEN``.
An input that is left out is an empty text, and stands for its default.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path, PurePosixPath
from typing import Final, TypeVar

from backstop.adapters.github.comments import When
from backstop.core.divergence import Kind
from backstop.errors import UsageError
from backstop.gate.request import MOST_REPEATS, Runtime

PREFIX: Final = "INPUT_"
_REF: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._/@+-]{0,254}", re.ASCII)

Word = TypeVar("Word", bound=Enum)


class InputError(UsageError):
    """An input of the action has no meaning; the message names the input."""

    slug = "action-input"


@dataclass(frozen=True, slots=True, kw_only=True)
class Inputs:
    """What the workflow asks for.

    Paths are relative to the workspace and stay in it. `base` is a folder that holds a
    checkout of the base, `base_ref` a commit, branch or tag to fetch instead; without either
    the event names the base. `fail_on` None leaves it to the configuration. `post_from` makes
    the step post what another run has judged, and judge nothing itself.
    """

    config: PurePosixPath
    agent: str | None
    base: PurePosixPath | None
    base_ref: str | None
    runtime: Runtime
    token: str = field(repr=False)
    comment: When
    fail_on: frozenset[Kind] | None
    allow_empty: bool
    changed_only: bool | None
    repeat: int
    cache_dir: PurePosixPath | None
    cache_secret: str = field(repr=False)
    show_values: bool
    report_path: PurePosixPath
    post_from: PurePosixPath | None

    @property
    def secrets(self) -> tuple[str, ...]:
        """What must never be read in a log."""
        return tuple(text for text in (self.token, self.cache_secret) if text)


def parse(environment: Mapping[str, str]) -> Inputs:
    """The inputs that the runner's `environment` holds. Raises `InputError`."""
    given = _Given(environment)
    base, base_ref = given.path("base"), given.ref("base-ref")
    if base is not None and base_ref is not None:
        raise InputError("inputs base and base-ref both name the base: keep one of them")
    return Inputs(
        config=given.path("config") or PurePosixPath("backstop.yaml"),
        agent=given.text("agent") or None,
        base=base,
        base_ref=base_ref,
        runtime=given.word("runtime", Runtime),
        token=given.text("github-token"),
        comment=given.word("comment", When),
        fail_on=given.kinds("fail-on"),
        allow_empty=given.truth("allow-empty") or False,
        changed_only=given.truth("changed-only"),
        repeat=given.number("repeat", most=MOST_REPEATS) or 1,
        cache_dir=given.path("cache-dir"),
        cache_secret=given.text("cache-secret"),
        show_values=given.truth("show-values") or False,
        report_path=given.path("report-path") or PurePosixPath("backstop-report"),
        post_from=given.path("post-from"),
    )


def within(workspace: Path, path: PurePosixPath) -> Path:
    """`path` in the workspace. Raises `InputError` where a link leads out of it.

    A pull request writes the workspace: what stands there must not send us elsewhere.
    """
    found = workspace / path
    if not found.resolve().is_relative_to(workspace.resolve()):
        raise InputError(f"{path}: a link leads out of the workspace; name what lies in it")
    return found


def folder(workspace: Path, path: PurePosixPath) -> Path:
    """`path` in the workspace, where no change decides what it is. Raises `InputError`.

    The base and the cache are told apart from the change by their folder alone.
    """
    if (workspace / path).resolve() != workspace.resolve() / path:
        raise InputError(
            f"{path}: is a link, or lies behind one; the base and the cache need a folder of "
            "their own in the workspace"
        )
    return workspace / path


class _Given:
    """The inputs as texts, each turned into a value under its own name."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment

    def text(self, name: str) -> str:
        """The input's text without surrounding blanks; empty if it was not given."""
        return self._environment.get(PREFIX + name.upper(), "").strip()

    def word(self, name: str, words: type[Word]) -> Word:
        """One of `words`; the first where the input was not given."""
        known = {str(word.value): word for word in words}
        chosen = self.text(name) or next(iter(known))
        if chosen not in known:
            raise InputError(f"input {name}: {chosen!r} is none of {', '.join(known)}")
        return known[chosen]

    def truth(self, name: str) -> bool | None:
        """True or false; None where the input was not given."""
        match self.text(name):
            case "":
                return None
            case "true" | "True" | "TRUE":
                return True
            case "false" | "False" | "FALSE":
                return False
            case other:
                raise InputError(f"input {name}: {other!r} is neither true nor false")

    def number(self, name: str, *, most: int) -> int | None:
        """A whole number from 1 to `most`; None where the input was not given."""
        if not (text := self.text(name)):
            return None
        digits = text.isascii() and text.isdecimal() and len(text) <= len(str(most))
        if not digits or not 1 <= int(text) <= most:
            raise InputError(f"input {name}: {text!r} is no whole number from 1 to {most}")
        return int(text)

    def path(self, name: str) -> PurePosixPath | None:
        """A path below the workspace; None where the input was not given."""
        if not (text := self.text(name)):
            return None
        path = PurePosixPath(text)
        if path.is_absolute() or ".." in path.parts or path == PurePosixPath() or "\0" in text:
            raise InputError(
                f"input {name}: {text!r} has to be a path below the workspace, like "
                "backstop.yaml, without a leading / and without .."
            )
        return path

    def ref(self, name: str) -> str | None:
        """A commit, branch or tag; None where the input was not given."""
        if not (text := self.text(name)):
            return None
        if _REF.fullmatch(text) is None or ".." in text:
            raise InputError(f"input {name}: {text!r} is no commit, branch or tag")
        return text

    def kinds(self, name: str) -> frozenset[Kind] | None:
        """Kinds of divergence, with commas between them; None where the input was not given."""
        if not (text := self.text(name)):
            return None
        known = {kind.value.lower(): kind for kind in Kind}
        words = [word.strip() for word in text.split(",")]
        for word in words:
            if word not in known:
                raise InputError(
                    f"input {name}: {word!r} is no kind of divergence; choose from "
                    + ", ".join(known)
                )
        return frozenset(known[word] for word in words)
