"""Versions of an agent with key rules of their own, on one store; and what really goes out."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from backstop.adapters.memory import MemoryStore
from backstop.core.canon import CANON_VERSION
from backstop.core.declaration import Declaration, Namespace
from backstop.core.events import FORMAT, Event, Header, RunOpened, StepStarted
from backstop.core.redaction import Redaction, key_from
from backstop.core.sealing import seal_lines
from backstop.guard.calls import Call, intent_of, name_call
from backstop.guard.claims.claim import perform_now
from backstop.guard.claims.desk import Produced
from backstop.guard.claims.oldkeys import OldKeys
from backstop.guard.journal import Attempt, Journal, raw
from backstop.ports import Answer, Recorded, Records

DESK = Namespace(agent="desk")

SECRET = key_from("a secret of the tests")

PLAIN = Declaration(tool="order", identity=("vendor",))
SLUG = Declaration(tool="order", identity=("vendor",), fields={"vendor": ("slug",)})
NARROW = Declaration(tool="order", identity=("vendor", "po"))


class Ticking:
    """A second passes whenever somebody looks."""

    def __init__(self) -> None:
        self._now = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)

    def now(self) -> datetime:
        self._now += timedelta(seconds=1)
        return self._now


class World:
    """One store, and what really went out."""

    def __init__(self) -> None:
        self.gone: set[str] = set()
        self.store = MemoryStore(
            clock=Ticking(), is_alive=lambda owner: owner.split("/")[0] not in self.gone
        )
        self.out: list[str] = []

    def rows(self, kind: type[Event]) -> list[Any]:
        return [event for event in self.store.read() if isinstance(event, kind)]

    def ledger(self) -> list[bytes]:
        """What stands in the store, sealed; it raises where that does not hold together."""
        opened = RunOpened(run="r1", at="2026-03-02T12:00:00.000Z")
        begun = StepStarted(run="r1", at="2026-03-02T12:00:00.000Z", step="s1", cursor=0)
        return list(seal_lines(self.store.header, [opened, begun, *self.store.read()]))

    def version(self, declaration: Declaration, *, owner: str = "w") -> Version:
        """A process of a version, which knows the rules that the store held when it started."""
        opening = Header(
            format=FORMAT,
            agent="desk",
            canon=CANON_VERSION,
            guarded=True,
            tools={declaration.tool: declaration.digest},
            declarations={declaration.digest: declaration},
        )
        # The first header says what the ledger is; later ones are merged into it.
        if self.store.header.declarations:
            self.store.register(opening)
        else:
            self.store.header = opening
        return Version(self, declaration, self.store.header, owner)


class Version:
    """One process of one version of the agent."""

    def __init__(self, world: World, declaration: Declaration, header: Header, owner: str) -> None:
        self.world = world
        self.store: Records = world.store
        self.declaration = declaration
        self.header = header
        self.keys = OldKeys(namespace=DESK, redaction_key=SECRET)
        self.journal = Journal(
            store=world.store,
            namespace=DESK,
            declarations={declaration.tool: declaration},
            version=owner,
            owner=owner,
        )

    def call(self, arguments: dict[str, Any], *, run: str = "r1", step: str = "s1") -> Call:
        attempt = Attempt(run=run, step=step, cursor=1, number=1)
        kept = Redaction(key=SECRET).arguments(arguments, self.declaration)
        call = name_call(
            self.declaration.tool, kept, self.declaration, attempt=attempt, namespace=DESK
        )
        assert isinstance(call, Call), call
        return call

    def asks(
        self,
        *,
        run: str = "r1",
        step: str = "s1",
        body: Callable[[], Produced] | None = None,
        meanwhile: Callable[[], object] = lambda: None,
        **arguments: Any,
    ) -> Answer:
        """Ask for the effect; `meanwhile` happens between the look and the claim."""
        known = self.keys.known_as(
            self.call(arguments, run=run, step=step), arguments, self.store, self.header
        )
        meanwhile()

        def act() -> Produced:
            self.world.out.append(arguments["vendor"])
            return Produced(result=raw(len(self.world.out)))

        return perform_now(
            self.store,
            intent_of(known.call, self.journal),
            body or act,
            no_effect_on=(ConnectionRefusedError,),
            bars=[intent_of(bar, self.journal) for bar in known.bars],
        )


def done(number: int) -> Recorded:
    return Recorded(result=raw(number))
