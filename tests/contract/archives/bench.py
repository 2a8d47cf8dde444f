"""What the archives' suite needs to know of one: the archive, and power over what it stands on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import Barrier, Thread

import msgspec

from backstop.auditports import Archive
from backstop.core.auditlog import ORIGIN, Entry, Sealed, Tip, entry_of, tip_at
from backstop.core.auditwalk import ArchiveMark, Walk, note_of
from backstop.core.events import Event, Header
from backstop.core.sealing import EVENT, open_header
from tests.dsl import sealed

STORY = """
agent clerk
tool pay identity vendor
run r1
step s1
commit pay{vendor: acme} -> {ok: true}
recorded pay{vendor: acme}
advance
step s2
doubt pay{vendor: bolt}
held pay{vendor: cast}
run r2
step t1
commit pay{vendor: dune}
resolve committed pay{vendor: bolt}
advance
close complete
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveBench:
    """An archive that holds nothing yet.

    `reopen` opens the same place as another process would. `put` makes it hold these entries,
    whatever it held and whatever they say: a store is not to be believed. `down` takes what it
    stands on away, and what is opened then cannot reach it; None where nothing can be taken away.
    """

    archive: Archive
    reopen: Callable[[], Archive]
    put: Callable[[Sequence[Entry]], None]
    down: Callable[[], None] | None


def chained(said: Sequence[Header | Event | Sealed], *, after: Tip = ORIGIN) -> list[Entry]:
    """Entries that say this, one after the other."""
    entries: list[Entry] = []
    for one in said:
        entries.append(entry_of(one, msgspec.json.encode(one), after=after))
        after = tip_at(entries[-1])
    return entries


def story(text: str = STORY) -> list[Entry]:
    """A whole archive of a ledger that tells `text`: header, events, note."""
    header, *lines, _ = sealed(text).splitlines()
    said: list[Header | Event] = [open_header(header, name="story")]
    return archived([*said, *(EVENT.decode(line) for line in lines)])


def archived(said: Sequence[Header | Event]) -> list[Entry]:
    """A whole archive of what a ledger says: a note comes last."""
    entries = chained(said)
    walk = walked(entries)
    return entries + chained([note_of(walk, digest="d" * 64, signature=None)], after=walk.tip)


def walked(entries: Sequence[Entry], *, mark: ArchiveMark | None = None) -> Walk:
    """A pass over these entries, which must hold; the end is not looked at."""
    walk = Walk("it", mark=mark)
    for _ in walk.each(entries):
        pass
    return walk


def appended_at_once(
    opened: Callable[[], Archive], entries: Sequence[Entry]
) -> list[BaseException]:
    """What goes wrong where four append the same entries at the same time."""
    start, failed = Barrier(4), list[BaseException]()

    def run() -> None:
        archive = opened()
        start.wait()
        try:
            archive.append(entries)
        except BaseException as error:  # noqa: BLE001 - a thread must not take it along
            failed.append(error)

    threads = [Thread(target=run) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    return failed


def held(archive: Archive, *, mark: ArchiveMark | None = None) -> list[Entry]:
    """What an archive holds, if it holds to the end. Raises as `Walk` does, and as the archive."""
    walk = Walk("it", mark=mark)
    entries = list(walk.each(archive.read()))
    walk.close()
    return entries
