"""``backstop ledger archive``."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from backstop.adapters.files import read_bytes, write_atomic
from backstop.cli.options import keep_apart
from backstop.cli.stores import place
from backstop.clock import SystemClock
from backstop.core.auditwalk import ArchiveMark, open_mark, write_mark
from backstop.reports.escape import plain
from backstop.reports.explain import count_of
from backstop.wiring.archives import open_archive
from backstop.wiring.archiving import Archived, archive_file, archive_store


def archive(
    source: str, *, to: str, high_water: Path | None, config: Path, agent: str | None
) -> str:
    """Take a file's or a store's ledger into the archive at `to`; what went in, in one line.

    With `high_water` the archive must reach as far as the mark in that file, which is raised.
    """
    keep_apart(high_water, source, option="--high-water")
    mark = None if high_water is None or not high_water.exists() else read_mark(high_water)
    done = _taken(source, to, mark=mark, config=config, agent=agent)
    if high_water is not None and done.mark != mark:
        write_atomic(high_water, write_mark(done.mark))
    return _told(done, to, high_water, is_new=mark is None)


def read_mark(path: Path) -> ArchiveMark:
    """The mark in a file. Raises `BackstopError` where there is none, or it is damaged."""
    return open_mark(read_bytes(path), name=str(path))


def _taken(
    source: str, to: str, *, mark: ArchiveMark | None, config: Path, agent: str | None
) -> Archived:
    if "://" not in source:
        with closing(open_archive(to, create=True)) as kept:
            return archive_file(Path(source), kept, name=to, source=source, agent=agent, mark=mark)
    where = place(store=source, config=config, agent=agent)
    store = where.open()  # before an archive is made for nothing
    with closing(open_archive(to, create=True)) as kept:
        return archive_store(
            store,
            kept,
            url=source,
            agent=where.agent,
            name=to,
            now=SystemClock().now(),
            mark=mark,
        )


def _told(done: Archived, to: str, high_water: Path | None, *, is_new: bool) -> str:
    new = count_of(done.events, "new event") if done.entries else "nothing new"
    mark = done.mark
    kept = "no mark kept elsewhere (see --high-water)"
    if high_water is not None:
        kept = f"high-water mark {plain(str(high_water))}"
        kept += ", which begins here" if is_new else ""
    return (
        f"{plain(to)}: {new}; holds the ledger of {plain(done.agent)} up to entry {mark.seq:,}, "
        f"sha256:{mark.hash}; {kept}"
    )
