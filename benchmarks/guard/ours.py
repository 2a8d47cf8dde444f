"""Backstop, as an agent's code uses it: an `@effect` function within a recorded step."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager
from typing import Final

from backstop.clock import SystemClock
from backstop.core.canon import CANON_VERSION
from backstop.core.declaration import Declaration, Namespace
from backstop.core.events import FORMAT, Header
from backstop.guard.claims.capability import DidNotHappen, Found, Happened, probe
from backstop.guard.claims.safety import Safety
from backstop.guard.effect import effect, install
from backstop.guard.journal import Attempt, Journal
from backstop.guard.plugin.recorder import RecordingPlugin
from backstop.ports import LedgerStore
from backstop.wiring.stores import open_store
from benchmarks.guard.work import RUN, TOOL, Guarded, Order, Place, Unfinished, order, tool

AGENT: Final = "bench"
IDENTITY: Final = ("vendor_id", "po_ref")


def declared() -> Declaration:
    """What is known about the tool, as configuration and framework say it."""
    text, number = {"type": "string"}, {"type": "integer"}
    return Declaration(
        tool=TOOL,
        identity=IDENTITY,
        schema={
            "type": "object",
            "properties": {
                "vendor_id": text,
                "po_ref": text,
                "quantity": number,
                "unit_price": text,
                "note": text,
            },
            "required": ["vendor_id", "po_ref", "quantity", "unit_price", "note"],
        },
    )


def opened(place: Place, kind: str) -> LedgerStore:
    """The store of this `kind`, in the place's folder or at its service."""
    known = declared()
    header = Header(
        format=FORMAT,
        agent=AGENT,
        canon=CANON_VERSION,
        guarded=True,
        tools={TOOL: known.digest},
        declarations={known.digest: known},
    )
    file = (place.folder / "ledger.db").absolute()
    url = {
        "memory": "memory:",
        "sqlite": f"sqlite:///{file}",
        "process": f"sqlite:///{file}?durability=process",
        "firestore": "firestore://bench/(default)/backstop",
    }[kind]
    if kind == "firestore":
        os.environ["FIRESTORE_EMULATOR_HOST"] = place.service
    return open_store(url, header=header, clock=SystemClock())


def journal_of(store: LedgerStore) -> Journal:
    """A process of the agent that writes into `store`."""
    return Journal(
        store=store,
        namespace=Namespace(agent=AGENT),
        declarations={TOOL: declared()},
        version="0123456789abcdef",
        owner=f"bench-{os.getpid()}",
    )


def build(place: Place) -> Guarded:
    """Variant: the kind of store, with ``+lookup`` where a probe may resolve doubts."""
    kind, _, lookup = place.variant.partition("+")
    journal = journal_of(opened(place, kind))
    attempt = journal.begin(RUN, cursor=0, trigger="message", message="order", state={})

    def look(_key: str, arguments: Order) -> Found:
        return Happened({"ok": True}) if place.seen(arguments["po_ref"]) else DidNotHappen()

    safety = Safety(capability=probe(look, settle="0s")) if lookup else Safety()
    install(RecordingPlugin(journal, safety={TOOL: safety}))
    create = effect(tool(place))

    def call(ref: str) -> object:
        with within(journal, attempt):
            told = create(**order(ref))
        if "backstop" in told:
            raise Unfinished(f"{told['backstop']}: {told.get('reason', '')}")
        return told

    return Guarded(call=call)


def within(journal: Journal, attempt: Attempt) -> AbstractContextManager[Attempt]:
    """As the worker does around a step."""
    return journal.within(attempt)
