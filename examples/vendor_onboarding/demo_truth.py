"""What really happened in the demonstration, whatever anybody's ledger says of it.

The tools write each thing that they do into one file, a line at a time: `O_APPEND` makes a line
of several processes whole. Nothing else writes there, and nothing reads it but the judge below
and a person who has to decide a doubt.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from examples.vendor_onboarding.v1 import agent

FIRST_TICK: Final = 0


class Deed(msgspec.Struct, frozen=True, order=True):
    """One thing that a tool did to the world: an order, a mail, a reminder."""

    tool: str
    target: str

    def __str__(self) -> str:
        """As a person is told of it."""
        return f"{self.tool} {self.target!r}"


_NAMES: Final = {
    "send_mail": ("to", "subject"),
    "create_purchase_order": ("po_ref",),
    "schedule_reminder": ("about",),
    "request_approval": ("po_ref",),
}


def deed(tool: str, arguments: Mapping[str, Any]) -> Deed | None:
    """What a call does to the world; None if it only asks."""
    names = _NAMES.get(tool)
    return None if names is None else Deed(tool, ": ".join(arguments[name] for name in names))


class Truth:
    """The file of what happened."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def write(self, done: Deed) -> None:
        """It happens now."""
        line = msgspec.json.encode(done) + b"\n"
        out = os.open(self._file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(out, line)
        finally:
            os.close(out)

    def read(self) -> Counter[Deed]:
        """How often each thing happened."""
        if not self._file.exists():
            return Counter()
        lines = self._file.read_bytes().splitlines()
        return Counter(msgspec.json.decode(line, type=Deed) for line in lines)


def wanted(vendor: str, ticks: int) -> set[Deed]:
    """What a vendor's first ticks are to bring about, as its contract has it: once each."""
    about = agent.VENDORS[vendor]
    deeds = {
        tick: Deed("create_purchase_order", f"PO-{vendor}-{tick}") for tick in about.orders
    } | {agent.DOCUMENTS_AT: Deed("schedule_reminder", f"Documents of {about.name}")}
    if about.currency == "JPY":
        deeds[agent.TAX_FORM_AT] = Deed("schedule_reminder", f"Tax form of {about.name}")
    letters = {FIRST_TICK: "Welcome", agent.LAST_TICK: "Onboarding complete"}
    deeds |= {
        tick: Deed("send_mail", f"{about.mail}: {subject}") for tick, subject in letters.items()
    }
    return {done for tick, done in deeds.items() if tick < ticks}


class Line(msgspec.Struct, frozen=True):
    """What is to be shown of one run: how far it came, and what went out in it."""

    run: str
    ticks: int
    cursor: int
    committed: int
    happened: Counter[Deed]
    wanted: frozenset[Deed]

    def findings(self) -> list[str]:
        """What is wrong with it, in words; empty if nothing is."""
        twice = sorted(one for one, times in self.happened.items() if times > 1)
        words = [f"{one} happened {self.happened[one]} times" for one in twice]
        words += [f"{one} never happened" for one in sorted(self.wanted - self.happened.keys())]
        words += [
            f"{one} happened and nobody wanted it"
            for one in sorted(self.happened.keys() - self.wanted)
        ]
        if self.cursor != self.ticks:
            words.append(f"the cursor is at {self.cursor} after {self.ticks} ticks")
        if self.committed != len(self.wanted):
            words.append(f"{self.committed} effects are on record, {len(self.wanted)} belong there")
        return [f"{self.run}: {one}" for one in words]


def mails(lines: Iterable[Line]) -> Counter[Deed]:
    """The mails that went out, and how often each."""
    every = sum((line.happened for line in lines), Counter[Deed]())
    return Counter({one: times for one, times in every.items() if one.tool == "send_mail"})
