# ruff: noqa: ANN401 - contents and parts are the framework's
"""What an agent is shown of a run, turn by turn: which of it is new, and whose words it is.

A request tells the whole conversation again. What stands where it stood before is only
recognised, so that a turn costs by what is new in it, however long the conversation is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, NamedTuple

from backstop.adk.requests import RequestDigester
from backstop.adk.retold import Told, is_told_again, told


class Said(NamedTuple):
    """A part that a step said, by its digest."""

    digest: str
    step: str


class _Place(NamedTuple):
    """A content as it stood in the request before; None for one that is digested each time."""

    told: Told | None
    digests: tuple[str, ...]


@dataclass(slots=True, kw_only=True, eq=False)
class Shown:
    """What one agent was shown in its latest turn.

    `joined` is a join of the steps whose words that was, but for those that are `fresh`.
    `nobodys` are parts that no step is known to have said, by their digests.
    """

    fresh: dict[str, None] = field(default_factory=dict)
    joined: str | None = None
    nobodys: dict[str, Any] = field(default_factory=dict)
    _covered: set[str] = field(default_factory=set)
    _places: list[_Place] = field(default_factory=list)
    _digests: set[str] = field(default_factory=set)
    _heard: int = 0
    _quiet: int = 0

    def __contains__(self, digest: object) -> bool:
        """Whether a part of this digest was shown."""
        return digest in self._digests

    def look(
        self, contents: Sequence[Any], parts: RequestDigester, makers: Mapping[str, Iterable[str]]
    ) -> None:
        """These are shown now; `makers` are who said a part."""
        goes_on = len(contents) >= len(self._places)
        new: dict[str, Any] = {}
        for at, (known, content) in enumerate(zip(self._places, contents, strict=False)):
            if known.told is None or not is_told_again(known.told, content):
                place = self._places[at] = _place(content, parts, new)
                goes_on &= place.digests == known.digests
        for content in islice(contents, len(self._places), None):
            self._places.append(_place(content, parts, new))
        if goes_on:
            self._add(new, makers)
        else:
            self._begin_anew(contents, makers)

    def listen(self, heard: Sequence[Said], quiet: Sequence[str]) -> None:
        """Who said what, in order, and who said nothing: had they said something, it were shown."""
        for digest, step in islice(heard, self._heard, None):
            if digest in self._digests:
                self._is_of(digest, (step,))
        for step in islice(quiet, self._quiet, None):
            self._reads(step)
        self._heard, self._quiet = len(heard), len(quiet)

    def join(self, joined: str) -> None:
        """The step `joined` is a join of all until now."""
        self.joined = joined
        self._covered.update(self.fresh)
        self.fresh.clear()

    def _add(self, new: Mapping[str, Any], makers: Mapping[str, Iterable[str]]) -> None:
        for digest, part in new.items():
            if digest not in self._digests:
                self._digests.add(digest)
                self.nobodys[digest] = part
                self._is_of(digest, makers.get(digest, ()))

    def _begin_anew(self, contents: Sequence[Any], makers: Mapping[str, Iterable[str]]) -> None:
        """Something is not shown any more: whose words the others are is looked up again."""
        del self._places[len(contents) :]
        joined, covered = self.joined, self._covered
        self.joined, self._covered, self._quiet = None, set(), 0
        for known in (self.fresh, self.nobodys, self._digests):
            known.clear()
        for place, content in zip(self._places, contents, strict=True):
            self._add(dict(zip(place.digests, content.parts or (), strict=True)), makers)
        if joined is not None and covered <= self.fresh.keys():
            self.joined, self._covered = joined, covered
            for step in covered:
                del self.fresh[step]

    def _is_of(self, digest: str, steps: Iterable[str]) -> None:
        for step in steps:
            self.nobodys.pop(digest, None)
            self._reads(step)

    def _reads(self, step: str) -> None:
        if step not in self._covered:
            self.fresh[step] = None


def _place(content: Any, parts: RequestDigester, new: dict[str, Any]) -> _Place:
    digests = []
    for part in content.parts or ():
        digest = parts.part(part)
        digests.append(digest)
        new[digest] = part
    return _Place(told(content, digests[0]) if len(digests) == 1 else None, tuple(digests))
