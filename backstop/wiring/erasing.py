"""Takes a person out of a ledger, in a file or in a store."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from backstop.adapters.files import check_writable, chunks, write_atomic
from backstop.core.erasure import Eraser, erase_lines, subject
from backstop.core.ledgerfile import verify
from backstop.core.ledgerverify import SilentSkip
from backstop.core.redaction import RedactionKey
from backstop.core.sealing import each_line, open_header
from backstop.errors import ConfigError
from backstop.ports import Erasable, Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Erased:
    """What was taken out: rows by run, and how many rows name the subject and had to stay."""

    rows: dict[str, int]
    named: int


def erase_file(path: Path, text: str, *, key: RedactionKey | None, fields: Iterable[str]) -> Erased:
    """Take what `text` names out of a sealed ledger, which is sealed anew in its place.

    A ledger that does not hold is not touched: a new seal would hide what is wrong with it.
    Raises `LedgerError`, and ``redaction-key`` where it holds tokens and there is no key.
    """
    name = str(path)
    check_writable(path)
    _check(path, name)
    header = open_header(next(iter(each_line(chunks(path, kind="ledger"), name=name))), name=name)
    eraser = Eraser(subject(text, header.declarations.values(), key=key, fields=fields))
    # Of a compressed ledger, so is what will take its place.
    beside = path.with_name(f".{path.stem}.erasing{path.suffix}")
    try:
        write_atomic(beside, erase_lines(lambda: chunks(path, kind="ledger"), eraser, name=name))
        if eraser.rows:
            _check(beside, name)
            write_atomic(path, chunks(beside, kind="ledger"))
    finally:
        beside.unlink(missing_ok=True)
    return Erased(rows=dict(eraser.rows), named=eraser.named)


def erase_store(
    store: Store, text: str, *, url: str, key: RedactionKey | None, fields: Iterable[str]
) -> Erased:
    """Take what `text` names out of the ledger that `store` holds.

    Raises `ConfigError` (``erase-store``) for a store that keeps its past, ``redaction-key``
    where it holds tokens and there is no key, and what the store raises.
    """
    if not isinstance(store, Erasable):
        raise ConfigError(
            f"{url}: nothing can be erased in this kind of store; pull the ledger, erase in the "
            "file, and let the store's rows expire",
            slug="erase-store",
        )
    eraser = Eraser(subject(text, store.header.declarations.values(), key=key, fields=fields))
    store.rewrite(eraser)
    return Erased(rows=dict(eraser.rows), named=eraser.named)


def _check(path: Path, name: str) -> None:
    with contextlib.suppress(SilentSkip):  # no damage: it is what the ledger has to show
        verify(chunks(path, kind="ledger"), name=name)
