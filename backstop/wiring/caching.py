"""Replays that were made before: kept sealed in a folder, and judged anew each time.

What is kept is what a replay told, never a decision: policy, waivers and the day's date are
looked at afresh, so that only what takes long is spared.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date
from functools import cache
from pathlib import Path
from typing import Final, TypeAlias

import msgspec

from backstop import __version__
from backstop.adapters.cache import CacheFolder
from backstop.adapters.content import content_digest
from backstop.adapters.environment import installed, prefix_of
from backstop.adapters.trees import read_tree
from backstop.core import intentsfile
from backstop.core.canon import Json
from backstop.core.ledgerfile import Ledger
from backstop.errors import BackstopError
from backstop.gate.cached import Secret, blinded, key_of, seal, secret_from, unseal
from backstop.gate.request import GateRequest, SandboxKind
from backstop.gate.touched import within_reach
from backstop.replay.wire import ToolSeen
from backstop.wiring.checkouts import inside, left_out, pointed_to
from backstop.wiring.jobs import Job
from backstop.wiring.redacting import redaction_key
from backstop.wiring.replaying import Told
from backstop.wiring.sandboxes import IGNORE_FILE, INDEX

Replays: TypeAlias = tuple[Told | None, Told]

CACHE_KEY: Final = "BACKSTOP_CACHE_KEY"
"""The variable that holds the secret: of our own environment, never of a candidate's."""

_SOURCE: Final = Path(__file__).parents[1]


class _Half(msgspec.Struct, frozen=True, kw_only=True):
    """What one version's replay told: a sealed intents file, and its tools."""

    intents: bytes
    tools: list[ToolSeen]


class _Entry(msgspec.Struct, frozen=True, kw_only=True):
    candidate: _Half
    control: _Half | None


@dataclass(slots=True, kw_only=True)
class ReplayCache:
    """Replays by all that they depend on. `remarks` say of each agent what came of it.

    `day` is part of the key: tags of images and ranges of packages come to mean something else
    in time, so nothing is believed for longer than a day (UTC).
    """

    folder: Path
    secret: Secret
    day: date
    remarks: list[str] = field(default_factory=list)

    def get(
        self, job: Job, ledger: Ledger, play: Callable[[], Replays], *, world: int = 0
    ) -> Replays:
        """What `play` gives in `world`: from the cache, if it was kept and may be believed."""
        key = self._key(job, ledger, world)
        if key is None:
            return play()
        kept = CacheFolder(folder=self.folder)
        if (entry := kept.get(key)) is not None:
            if (found := self._opened(entry, key, job.agent.name)) is not None:
                self._remark(job, "replays of an earlier gate, judged anew")
                return found
            self._remark(job, "an entry of the cache is not ours, or was changed: ignored")
        played = play()
        if self._key(job, ledger, world) == key:  # else somebody wrote to a checkout meanwhile
            self._keep(job, kept, key, played)
        return played

    def _key(self, job: Job, ledger: Ledger, world: int) -> str | None:
        try:
            return key_of({**self._facts(job, ledger), "world": world})
        except _NoKey as why:
            self._remark(job, f"not cached: {why}")
            return None

    def _remark(self, job: Job, what: str) -> None:
        self.remarks.append(f"{job.agent.name}: {what}")

    def _opened(self, entry: bytes, key: str, agent: str) -> Replays | None:
        body = unseal(entry, key=key, secret=self.secret)
        return None if body is None else _read(body, agent)

    def _keep(self, job: Job, kept: CacheFolder, key: str, played: Replays) -> None:
        if not all(told is None or told.is_whole for told in played):
            return  # a slower or broken machine is no reason to say so again
        body = _written(played)
        if _read(body, job.agent.name) != played:
            return  # what cannot be told again as it was is not kept
        try:
            kept.put(key, seal(body, key=key, secret=self.secret))
        except BackstopError as error:
            self._remark(job, f"not cached: {error}")

    def _facts(self, job: Job, ledger: Ledger) -> dict[str, Json]:
        """All that the replays depend on. Raises `_NoKey` where that cannot be said."""
        ruling, redaction = job.ruling, redaction_key()
        kind, top = job.sandbox.kind, job.ruling_top
        return {
            "agent": job.agent.name,
            "ledger": ledger.digest,
            "candidate": self._version(job, job.candidate, job.tops[0], job.interpreters.candidate),
            "base": None
            if job.base is None
            else self._version(job, job.base, job.tops[1], job.interpreters.base),
            "configs": [_bytes_digest(Path(config.file)) for config in (job.config, ruling)],
            "judged with a base": job.base_config is not None,
            "sandbox": [kind.value, job.sandbox.runtime.value],
            "packages": []
            if kind is SandboxKind.DOCKER
            else [_packages(job.interpreters.candidate), _packages(job.interpreters.base)],
            "backstop": [__version__, _own_source()],
            "index": blinded(os.environ.get(INDEX, ""), self.secret),
            "redaction": "" if redaction is None else blinded(redaction.secret.hex(), self.secret),
            "ignored": "" if top is None else _bytes_digest(top / IGNORE_FILE),
            "day": self.day.isoformat(),
        }

    def _version(self, job: Job, folder: Path, top: Path | None, python: str | None) -> Json:
        """A version with everything that it may import from its checkout."""
        place = None if top is None else inside(folder, top)
        if top is None or place is None:
            raise _NoKey(f"nobody knows where the checkout around {folder} begins")
        own = None if job.sandbox.kind is SandboxKind.DOCKER else python
        try:
            files = read_tree(top, without=left_out(top, self.folder, prefix_of(own)))
        except BackstopError as error:
            raise _NoKey(str(error)) from None
        reaches = pointed_to(top, files, place)
        seen: dict[str, Json] = dict(within_reach(files, folder=place, reaches=reaches))
        return {"folder": place, "files": seen, "content": content_digest(folder)}


def cache_of(request: GateRequest, day: date) -> ReplayCache | None:
    """The cache of a request; None where none is named, or nothing in it could be believed.

    Raises `ConfigError` (``cache-key``) for a secret that could be guessed.
    """
    if request.cache_dir is None or not request.cache_key:
        return None
    return ReplayCache(
        folder=request.cache_dir,
        secret=secret_from(request.cache_key),
        day=day,
    )


class _NoKey(Exception):
    """What a replay depends on cannot be named."""


def _packages(python: str | None) -> str:
    found = installed(python)
    if found is None:
        raise _NoKey("nobody can tell what the environment's packages hold")
    return found


def _bytes_digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest() if file.is_file() else ""


@cache
def _own_source() -> str:
    """Digest of Backstop itself, the harness among it."""
    return content_digest(_SOURCE)


def _written(played: Replays) -> bytes:
    control, candidate = played
    entry = _Entry(candidate=_half(candidate), control=None if control is None else _half(control))
    return msgspec.msgpack.encode(entry)


def _half(told: Told) -> _Half:
    rows: list[intentsfile.Row] = [*told.intents, *told.runs]
    return _Half(intents=intentsfile.write(told.header, rows), tools=list(told.tools))


def _read(body: bytes, agent: str) -> Replays | None:
    """What an entry holds; None for one of another form, which an older Backstop left."""
    try:
        entry = msgspec.msgpack.decode(body, type=_Entry)
        control = None if entry.control is None else _told(entry.control, agent)
        return control, _told(entry.candidate, agent)
    except (msgspec.MsgspecError, BackstopError):
        return None


def _told(half: _Half, agent: str) -> Told:
    read = intentsfile.read(half.intents, name="the cache", expect_agent=agent)
    return Told(
        header=read.header, intents=tuple(read.intents), runs=tuple(read.runs), tools=half.tools
    )
