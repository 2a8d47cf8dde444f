"""``backstop ledger erase``."""

from __future__ import annotations

import sys
from itertools import islice
from pathlib import Path
from typing import Final

from backstop.cli.stores import place
from backstop.errors import UsageError
from backstop.reports.escape import plain
from backstop.reports.explain import count_of
from backstop.wiring.erasing import Erased, erase_file, erase_store
from backstop.wiring.redacting import redaction_key

_RUNS_NAMED: Final = 5


def erase(ledger: str, *, subject: str, fields: list[str], config: Path, agent: str | None) -> str:
    """Take a subject out of a file or a store; what went, in one line that does not name it."""
    text, key = named(subject), redaction_key()
    if "://" in ledger:
        store = place(store=ledger, config=config, agent=agent).open()
        return told(ledger, erase_store(store, text, url=ledger, key=key, fields=fields))
    return told(ledger, erase_file(Path(ledger), text, key=key, fields=fields))


def named(subject: str) -> str:
    """The subject; ``-`` stands for what comes on standard input. Raises `UsageError`."""
    text = (sys.stdin.read() if subject == "-" else subject).strip()
    if not text:
        raise UsageError("--subject: is empty, and would be everybody; name whom to take out")
    return text


def told(where: str, done: Erased) -> str:
    """What went, in one line."""
    stayed = ""
    if done.named:
        stayed = (
            f"; {count_of(done.named, 'row')} name the subject where keys and repeats are told "
            "apart (run, step, delivery, override): those stay"
        )
    if not done.rows:
        return f"{plain(where)}: nothing tells of the subject, and nothing was changed{stayed}"
    runs = ", ".join(plain(run) for run in islice(sorted(done.rows), _RUNS_NAMED))
    more = ", ..." if len(done.rows) > _RUNS_NAMED else ""
    return (
        f"{plain(where)}: erased {count_of(sum(done.rows.values()), 'row')} in "
        f"{count_of(len(done.rows), 'run')} ({runs}{more}), which cannot be replayed any more; "
        f"keys and what happened stay{stayed}"
    )
