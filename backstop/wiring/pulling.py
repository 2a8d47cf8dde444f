"""A store's ledger as it was at one instant, pulled into a sealed file."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final, Protocol

from backstop.adapters.files import check_writable, chunks, write_atomic
from backstop.adapters.parts import PullFolder, Terms, put_in_place
from backstop.core.events import Header
from backstop.core.ledgerfile import Summary, seal_lines, verify
from backstop.core.ledgerverify import SilentSkip
from backstop.errors import BackstopError, LedgerError, UsageError
from backstop.ports import Snapshots
from backstop.wiring.signing import Signer

Progress = Callable[[int, int], None]

_TICK: Final = timedelta(milliseconds=1)
"""What the times of events are told in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pulled:
    """What a pulled ledger holds, as of when, and whether a pull was taken up again."""

    summary: Summary
    at: str
    resumed: bool


class Source(Snapshots, Protocol):
    """What is pulled: a ledger in parts, and its first line."""

    @property
    def header(self) -> Header:
        """Whose ledger it is; as of any time after its parts were named, it tells of them all."""
        ...


def pull(
    store: Source,
    *,
    url: str,
    agent: str,
    out: Path,
    at: datetime | None,
    now: datetime,
    signer: Signer | None = None,
    progress: Progress | None = None,
) -> Pulled:
    """Pull the ledger as it was at `at` into the file `out`, sealed and verified.

    What was pulled lies in a folder beside `out` until all is there; a pull that was killed is
    taken up again, for its own instant. Without `at`, it is the last instant that is over.
    Nothing is written of a ledger that does not hold, with one exception: silent skips are
    what such a ledger is there to show, so it is written, though never signed, and the error
    raised all the same.
    Raises `BackstopError`: ``pull-busy``, ``pull-folder``, ``pull-other``; `LedgerError`; and
    what the store raises.
    """
    if at is not None and at > now:
        raise UsageError(f"--at: {at.isoformat()} is yet to come")
    check_writable(out)
    target = Path(os.path.realpath(out))
    if target.exists() and not target.is_file():
        raise UsageError(f"--out: {out} is no file; a pull is put in place at once, by its name")
    folder = PullFolder(target.with_name(f"{target.name}.part"))
    with folder.held():
        terms = folder.terms()
        resumed = terms is not None
        if terms is None:
            instant = _instant(at, now)
            store.parts(instant)  # whatever is written from now on is later
            terms = Terms(store=url, agent=agent, at=instant.isoformat(), header=store.header)
            folder.begin(terms)
        else:
            _check_same(terms, url=url, agent=agent, at=at, folder=folder)
        sealed = _sealed(store, terms, folder, suffix=target.suffix, progress=progress)
        summary = _placed(sealed, out, folder, agent=agent, signer=signer)
    return Pulled(summary=summary, at=terms.at, resumed=resumed)


def _instant(at: datetime | None, now: datetime) -> datetime:
    if at is not None:
        return at.astimezone(UTC)
    # Of the millisecond that is now, more may come.
    return now.astimezone(UTC).replace(microsecond=now.microsecond // 1000 * 1000) - _TICK


def _check_same(
    terms: Terms, *, url: str, agent: str, at: datetime | None, folder: PullFolder
) -> None:
    same = (terms.store, terms.agent) == (url, agent)
    if same and at in {None, datetime.fromisoformat(terms.at)}:
        return
    raise BackstopError(
        f"{folder.path}: holds a pull that was begun, of {terms.agent} from {terms.store} at "
        f"{terms.at}. Take that up again by asking for the same, or remove the folder",
        slug="pull-other",
    )


def _sealed(
    store: Source, terms: Terms, folder: PullFolder, *, suffix: str, progress: Progress | None
) -> Path:
    """All parts, in one sealed file within the folder."""
    at = datetime.fromisoformat(terms.at)
    parts = store.parts(at)
    for number, part in enumerate(parts):
        if not folder.is_whole(number, part):
            folder.keep(number, part, store.pull(part, at=at))
        if progress is not None:
            progress(number + 1, len(parts))
    sealed = folder.path / f"sealed{suffix}"
    write_atomic(sealed, seal_lines(terms.header, folder.events(len(parts))))
    return sealed


def _placed(
    sealed: Path, out: Path, folder: PullFolder, *, agent: str, signer: Signer | None
) -> Summary:
    """Check the file, sign it and put it in place; the folder goes, whatever is found."""
    target = Path(os.path.realpath(out))
    try:
        if signer is None:
            summary = verify(chunks(sealed, kind="ledger"), name=str(out), expect_agent=agent)
        else:
            summary = signer.sign(sealed, sealed, name=str(out), agent=agent)
    except SilentSkip:
        # The gate refuses it for what it shows; a person needs to see it.
        put_in_place(sealed, target)
        folder.remove()
        raise
    except LedgerError:
        # The same rows would be refused again: a later pull is to see the store anew.
        folder.remove()
        raise
    put_in_place(sealed, target)
    folder.remove()
    return summary
