# ruff: noqa: ANN401, D102 - a session's state holds any type, and is used as any dictionary is
"""The session's state while a run is recorded: who wrote a key, and who reads it.

The framework's `State` objects read and write through to the dictionary that they are made
with; that one is replaced. What goes past it (a state that is dumped by pydantic, a value that
is changed where it lies) shows as a value that nobody wrote, and its reader read everything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from backstop.core.checkpoint import Dep
from backstop.mesh.spelling import ABSENT, Digester
from backstop.mesh.spots import Open, Spot, reading

_NONE: Final = object()
_FIXED: Final = frozenset({str, bytes, int, float, bool, type(None), object})
"""Of what cannot change where it lies; `object` is that of a key that is not there."""
_FRAMEWORK: Final = "_adk"
"""Begins the keys of the framework's own, which say nothing of what is done."""


@dataclass(slots=True, kw_only=True)
class Written:
    """A key as it stands: who wrote it, and its value's digest. Nobody: somebody unseen did."""

    by: list[str | Spot]
    digest: str


class Records(Protocol):
    """What the state needs of whoever records."""

    digester: Digester
    loose: Spot

    def input(self, name: str, left: Mapping[str, Any]) -> str:
        """The step that stands for what was there before the run."""
        ...

    def reads(self, spot: Spot, maker: str | Spot) -> None:
        """`spot` read what `maker` left."""
        ...


@dataclass(slots=True, kw_only=True, eq=False)
class Keys:
    """Who wrote what in one session. `observe` makes the input that a key's first value is."""

    records: Records
    observe: Callable[[str, Mapping[str, Any]], str]
    written: dict[str, Written] = field(default_factory=dict)
    seen: set[str] = field(default_factory=set)
    """Keys that were read or written in this run: what they hold is what somebody in it saw."""
    committing: dict[str, Any] = field(default_factory=dict)
    """What an event is about to write, whose writers are known."""
    _told: dict[Any, tuple[dict[Dep, None], Written | None, Any]] = field(default_factory=dict)
    """By key, where its last reading stands, and of what."""

    def nested(self) -> Keys:
        """For the session of a run inside of this one, which begins with the same state."""
        return Keys(records=self.records, observe=self.observe, written=dict(self.written))

    def reader(self) -> Spot | None:
        """Who reads a key now; None if that is told by somebody else."""
        spot = reading() or self.records.loose
        return None if isinstance(spot, Open) and spot.forwarding else spot

    def read(self, key: Any, value: Any) -> None:
        """A key is read; `value` is `ABSENT` itself where there is none."""
        spot = self.reader()
        if spot is None or str(key).startswith(_FRAMEWORK):
            return
        written = self.written.get(key)
        told = self._told.get(key)
        if (
            told is not None
            and told[0] is spot.deps
            and told[1] is written
            and told[2] is value
            and type(value) in _FIXED
        ):
            return  # an instruction that names a key twice reads it twice
        found = ABSENT if value is _NONE else self.records.digester.of(value)
        if written is None or (written.digest != found and key not in self.seen):
            held = {} if value is _NONE else {"value": deepcopy(value)}
            step = self.observe(key, {"state": {key: {"digest": found, **held}}})
            written = self.written[key] = Written(by=[step], digest=found)
        elif written.digest != found:
            # It was changed where it lies, by whoever had it in hand.
            written = self.written[key] = Written(by=[], digest=found)
        self.seen.add(key)
        if not written.by:
            spot.wild = True
        for maker in written.by:
            self.records.reads(spot, maker)
        self._told[key] = (spot.deps, written, value)

    def read_names(self, names: Iterable[str]) -> None:
        """All of it is read: what would be there, had a step written another key, is unknown."""
        spot = self.reader()
        if spot is not None:
            spot.wild = True
            self.observe("*", {"names": sorted(map(str, names))})

    def write(self, key: str, value: Any) -> None:
        """A key is written by the code that runs now."""
        self.seen.add(key)
        spot = reading()
        found = ABSENT if value is _NONE else self.records.digester.of(value)
        written = self.written.get(key)
        if spot is None:
            self.written[key] = Written(by=[], digest=found)
        elif written is not None and written.digest == found and written.by:
            if spot not in written.by:
                self.written[key] = Written(by=[*written.by, spot], digest=found)
        else:
            self.written[key] = Written(by=[spot], digest=found)
        if isinstance(spot, Open):
            spot.part("state")[key] = _held(found, value)

    def commit(self, delta: Mapping[str, Any], steps: Iterable[Open]) -> None:
        """An event writes these keys; they are of these steps, as far as nobody else wrote them.

        To be called before the session takes the event in.
        """
        made = list(steps)
        for key, value in delta.items():
            self.committing[key] = value
            self.seen.add(key)
            found = self.records.digester.of(value)
            known = self.written.get(key)
            if known is not None and known.digest == found and any(s in known.by for s in made):
                continue
            self.written[key] = Written(by=[*made], digest=found)
            for step in made:
                step.part("state")[key] = _held(found, value)

    def is_committed(self, key: str, value: Any) -> bool:
        """Whether this write is an event's, told by `commit`."""
        return self.committing.pop(key, _NONE) is value


def _held(digest: str, value: Any) -> dict[str, Any]:
    return {"digest": digest} if value is _NONE else {"digest": digest, "value": deepcopy(value)}


class RecordedState(dict[str, Any]):
    """A session's state that tells of each read and write; a copy of it is a plain dictionary."""

    def __init__(self, held: Mapping[str, Any], keys: Keys) -> None:
        super().__init__(held)
        self.keys_of = keys

    def _read(self, key: Any) -> None:
        self.keys_of.read(key, super().get(key, _NONE))

    def _read_all(self) -> None:
        for key in list(super().keys()):
            self._read(key)
        self.keys_of.read_names(super().keys())

    def __getitem__(self, key: str) -> Any:
        self._read(key)
        return super().__getitem__(key)

    def get(self, key: str, default: Any = None) -> Any:
        self._read(key)
        return super().get(key, default)

    def __contains__(self, key: object) -> bool:
        self._read(key)
        return super().__contains__(key)

    def __iter__(self) -> Iterator[str]:
        self._read_all()
        return super().__iter__()

    def __len__(self) -> int:
        self._read_all()
        return super().__len__()

    def __eq__(self, other: object) -> bool:
        self._read_all()
        return super().__eq__(other)

    __hash__ = None

    def keys(self) -> Any:
        self._read_all()
        return super().keys()

    def values(self) -> Any:
        self._read_all()
        return super().values()

    def items(self) -> Any:
        self._read_all()
        return super().items()

    def copy(self) -> dict[str, Any]:
        self._read_all()
        return dict(super().items())

    __copy__ = copy

    def __deepcopy__(self, memo: dict[int, Any]) -> dict[str, Any]:
        return deepcopy(self.copy(), memo)

    def __reduce__(self) -> Any:
        return dict, (self.copy(),)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self.__reduce__()

    def __or__(self, other: Any) -> Any:
        return self.copy() | other

    def __ror__(self, other: Any) -> Any:
        return other | self.copy()

    def __setitem__(self, key: str, value: Any) -> None:
        super().__setitem__(key, value)
        self.keys_of.write(key, value)

    def __delitem__(self, key: str) -> None:
        super().__delitem__(key)
        self.keys_of.write(key, _NONE)

    def setdefault(self, key: str, default: Any = None) -> Any:
        if key not in self:
            self[key] = default
        return super().__getitem__(key)

    def update(self, *args: Any, **named: Any) -> None:
        for key, value in dict(*args, **named).items():
            super().__setitem__(key, value)
            if not self.keys_of.is_committed(key, value):
                self.keys_of.write(key, value)

    def __ior__(self, other: Any) -> Any:
        self.update(other)
        return self

    def pop(self, key: str, *default: Any) -> Any:
        self._read(key)
        if super().__contains__(key):
            self.keys_of.write(key, _NONE)
        return super().pop(key, *default)

    def popitem(self) -> tuple[str, Any]:
        self._read_all()
        key, value = super().popitem()
        self.keys_of.write(key, _NONE)
        return key, value

    def clear(self) -> None:
        for key in list(super().keys()):
            del self[key]
