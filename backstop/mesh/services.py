# ruff: noqa: ANN401 - artifacts and memories are the framework's values
"""Artifacts and memory while a run is recorded: reads and writes tell whose they are.

An artifact that is loaded without a version is loaded under the one that is the latest then, and
that one is on record: no later version can slip in between.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from google.adk.artifacts.base_artifact_service import BaseArtifactService
from google.adk.memory.base_memory_service import BaseMemoryService, SearchMemoryResponse

from backstop.core.canon import short
from backstop.mesh.spelling import ABSENT, Digester, spelled
from backstop.mesh.spots import Open, Spot, reading


class Records(Protocol):
    """What the services need of whoever records."""

    digester: Digester
    loose: Spot

    def input(self, name: str, left: Mapping[str, Any]) -> str:
        """The step that stands for what was there before the run."""
        ...

    def reads(self, spot: Spot, maker: str | Spot) -> None:
        """`spot` read what `maker` left."""
        ...


class Shelf:
    """Which step saved which version of an artifact, and whether the run put its own words by."""

    def __init__(
        self, records: Records, saved: Mapping[tuple[str, int], list[str]], *, remembering: bool
    ) -> None:
        self.records = records
        self.remembering = remembering
        self._makers: dict[tuple[str, int], list[str | Spot]] = {
            named: [*steps] for named, steps in saved.items()
        }

    def reader(self) -> Spot:
        """Who reads now."""
        return reading() or self.records.loose

    def loaded(self, name: str, version: int | None, part: Any) -> None:
        """This version is read; None where there is none."""
        spot = self.reader()
        makers = self._makers.get((name, -1 if version is None else version))
        if makers is None:
            found = ABSENT if part is None else self.records.digester.of(_plain(part))
            at = "" if version is None else f"@{version}"
            left = {"artifacts": {name: {"version": version, "digest": found}}}
            makers = [self.records.input(f"artifact:{name}{at}", left)]
        for maker in makers:
            self.records.reads(spot, maker)

    def saved(self, name: str, version: int, part: Any) -> None:
        """A version was saved by the code that runs now."""
        spot = self.reader()
        self._makers[name, version] = [spot]
        if isinstance(spot, Open):
            held = {"version": version, "digest": self.records.digester.of(_plain(part))}
            spot.part("artifacts")[name] = held

    def listed(self, names: list[str]) -> None:
        """The names are read: what a step would have saved in another run is unknown."""
        spot = self.reader()
        spot.wild = True
        self.records.reads(spot, self.records.input("artifacts", {"names": sorted(names)}))

    def found(self, query: str, response: Any) -> None:
        """The memory was asked. Where the run's own words are in it, all of it may be."""
        spot = self.reader()
        spot.wild |= self.remembering
        digest = self.records.digester.of(_plain(response))
        step = self.records.input(f"memory:{short(query)}", {"query": query, "found": digest})
        self.records.reads(spot, step)

    def remembers(self, what: Any) -> None:
        """Something is put into the memory."""
        self.remembering = True
        spot = self.reader()
        if isinstance(spot, Open):
            spot.part("memory").append(self.records.digester.of(spelled(what)))


def _plain(value: Any) -> Any:
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json", exclude_none=True)
    return value


class RecordedArtifacts(BaseArtifactService):
    """The artifacts of a service, seen by a `Shelf`."""

    def __init__(self, inner: Any, shelf: Shelf) -> None:
        self._inner = inner
        self._shelf = shelf

    async def save_artifact(self, *, filename: str, artifact: Any, **named: Any) -> int:
        """Save a version, of the step that runs now."""
        version: int = await self._inner.save_artifact(
            filename=filename, artifact=artifact, **named
        )
        self._shelf.saved(filename, version, artifact)
        return version

    async def load_artifact(
        self, *, filename: str, version: int | None = None, **named: Any
    ) -> Any:
        """Load a version; left out, the one that is the latest now."""
        if version is None:
            versions = await self._inner.list_versions(filename=filename, **named)
            version = max(versions, default=None)
        part = await self._inner.load_artifact(filename=filename, version=version, **named)
        self._shelf.loaded(filename, version, part)
        return part

    async def list_artifact_keys(self, **named: Any) -> list[str]:
        """The names that there are."""
        names: list[str] = await self._inner.list_artifact_keys(**named)
        self._shelf.listed(names)
        return names

    async def delete_artifact(self, *, filename: str, **named: Any) -> None:
        """Delete all versions; who lists or loads them later reads that there are none."""
        await self._inner.delete_artifact(filename=filename, **named)
        self._shelf.saved(filename, -1, None)

    async def list_versions(self, *, filename: str, **named: Any) -> list[int]:
        """The versions that there are."""
        versions: list[int] = await self._inner.list_versions(filename=filename, **named)
        self._shelf.listed([f"{filename}@{version}" for version in versions])
        return versions

    async def list_artifact_versions(self, *, filename: str, **named: Any) -> list[Any]:
        """The versions that there are, and what is said of them."""
        versions: list[Any] = await self._inner.list_artifact_versions(filename=filename, **named)
        self._shelf.listed([spelled(_plain(version)) for version in versions])
        return versions

    async def get_artifact_version(self, *, filename: str, **named: Any) -> Any:
        """What is said of a version."""
        version = await self._inner.get_artifact_version(filename=filename, **named)
        self._shelf.listed([spelled(_plain(version))])
        return version


class RecordedMemory(BaseMemoryService):
    """The memory of a service, seen by a `Shelf`."""

    def __init__(self, inner: Any, shelf: Shelf) -> None:
        self._inner = inner
        self._shelf = shelf

    async def add_session_to_memory(self, session: Any) -> None:
        """Put a session by."""
        self._shelf.remembers(["session", session.id])
        await self._inner.add_session_to_memory(session)

    async def add_events_to_memory(self, **named: Any) -> None:
        """Put events by."""
        self._shelf.remembers(["events", [_plain(event) for event in named["events"]]])
        await self._inner.add_events_to_memory(**named)

    async def add_memory(self, **named: Any) -> None:
        """Put memories by."""
        self._shelf.remembers(["memories", [_plain(one) for one in named["memories"]]])
        await self._inner.add_memory(**named)

    async def search_memory(self, *, query: str, **named: Any) -> SearchMemoryResponse:
        """What the memory holds of a query."""
        found: SearchMemoryResponse = await self._inner.search_memory(query=query, **named)
        self._shelf.found(query, found)
        return found

    async def delete_memory(self, **named: Any) -> None:
        """Delete a memory, where the framework and the service know how."""
        self._shelf.remembers(["deleted", named.get("memory_id")])
        await self._inner.delete_memory(**named)
