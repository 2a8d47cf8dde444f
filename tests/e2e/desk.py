"""A folder with a signed ledger, the keys that are trusted, and a mark kept elsewhere."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from backstop.wiring.signing import Signer
from tests.dsl import sealed
from tests.e2e.command import Ran, backstop, refused
from tests.signed import Key, key

OURS, THIEF, NEW = key(1), key(2), key(3)
NOW = datetime(2026, 11, 30, 20, 0, tzinfo=UTC)

EARLY = """
agent desk
tool pay identity ref
run r1
step s1
commit pay{ref: 1} -> {ok: true}
advance
run r2
step s1
commit pay{ref: 2} -> {ok: true}
advance
"""
LATE = f"{EARLY}close complete\nrun r3\nstep s1\ncommit pay{{ref: 3}} -> {{ok: true}}\nadvance\n"
EARLY_SIZE, LATE_SIZE = (len(sealed(story).splitlines()) - 2 for story in (EARLY, LATE))
REWRITTEN = LATE.replace("commit pay{ref: 2}", "commit pay{ref: 20}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """Where they lie, and how they are checked."""

    folder: Path

    @property
    def ledger(self) -> Path:
        return self.folder / "l.jsonl"

    @property
    def keys(self) -> Path:
        return self.folder / "trusted"

    @property
    def mark(self) -> Path:
        return self.folder / "elsewhere" / "mark.json"

    def put(self, data: bytes, by: Key | None = OURS, *, epoch: int = 0) -> bytes:
        """Make `data` the ledger, signed by `by`."""
        self.ledger.write_bytes(data)
        if by is not None:
            who = Signer(key=by.signing, now=NOW, epoch=epoch)
            who.sign(self.ledger, self.ledger, name="L")
        return self.ledger.read_bytes()

    def check(self) -> Ran:
        """Verify without a mark."""
        return backstop(*self._command)

    def check_marked(self) -> Ran:
        """Verify with the mark."""
        return backstop(*self._command, "--high-water", self.mark)

    def refused(self, slug: str) -> str:
        return refused(slug, *self._command)

    def refused_by_mark(self, slug: str) -> str:
        """Refused with the mark, which stays as it was."""
        before = self.mark.read_bytes()
        said = refused(slug, *self._command, "--high-water", self.mark)
        assert self.mark.read_bytes() == before
        return said

    @property
    def _command(self) -> tuple[str | Path, ...]:
        return ("ledger", "verify", self.ledger, "--trusted-keys", self.keys)


def new_desk(folder: Path) -> Desk:
    """A desk that trusts our key, and has no ledger yet."""
    made = Desk(folder=folder)
    made.mark.parent.mkdir(parents=True)
    made.keys.write_text(f"trusted {OURS.public} ci 2026\n", encoding="utf-8")
    return made


def lines_of(data: bytes) -> list[bytes]:
    return data.splitlines(keepends=True)


def edited(data: bytes) -> bytes:
    """The ledger with one row that says something else."""
    changed = data.replace(b'"ok":true', b'"ok":null', 1)
    assert changed != data
    return changed
