"""I1 to I6: what holds of every effect, whatever workers, crashes and people do to it."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import ClassVar, Final

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from backstop.core.events import (
    CursorAdvanced,
    EffectClaimed,
    EffectCommitted,
    EffectFailed,
    EffectFenced,
    EffectInDoubt,
    EffectResolved,
    Event,
)
from backstop.core.lifecycle import Lives, Phase, decided
from backstop.errors import BackstopError
from backstop.ports import Held, InDoubt, Recorded, Refused, Standing
from tests.property.guarding import (
    AFTER,
    BEFORE,
    RETENTION_S,
    SETTLE_S,
    Unreachable,
    Worker,
    World,
)

KEYS: Final = ("acme", "globex")
OVERRIDES: Final = (None, None, None, '{"again":"lost"}', '{"again":"lost too"}')
ENDS: Final = (Recorded, Refused)

overrides = st.sampled_from(OVERRIDES)
pick = st.integers(0, 99)


class Guarding(RuleBasedStateMachine):
    """Anything that can happen to two effects, in any order."""

    capability: ClassVar[str]

    @initialize()
    def begin(self) -> None:
        self.world = World()

    @rule(key=st.sampled_from(KEYS), override=overrides)
    def deliver(self, key: str, override: str | None) -> None:
        self.world.start(self.capability, key, override)

    @precondition(lambda self: self.world.undecided())
    @rule(number=pick)
    def deliver_again(self, number: int) -> None:
        """What is not decided comes again, and runs through."""
        undecided = self.world.undecided()
        self.through(undecided[number % len(undecided)].claimed)

    def through(self, claimed: EffectClaimed) -> None:
        key = claimed.key.removeprefix(f"{self.capability}-")
        worker = self.world.start(self.capability, key, claimed.override)
        while worker.at:
            self.world.step(worker)

    def standing_at(self, *places: str) -> list[Worker]:
        return [worker for worker in self.world.workers if worker.at in places]

    def any_worker(self) -> bool:
        return any(worker.at for worker in self.world.workers)

    def one(self, number: int) -> Worker:
        still = [worker for worker in self.world.workers if worker.at]
        return still[number % len(still)]

    @precondition(any_worker)
    @rule(number=pick)
    def go_on(self, number: int) -> None:
        self.world.step(self.one(number))

    @precondition(any_worker)
    @rule(number=pick)
    def time_out(self, number: int) -> None:
        """Before the effect or after it: the caller cannot tell."""
        worker = self.one(number)
        if worker.at == BEFORE and worker.capability != "keyed" and number % 2:
            self.world.act(worker)
        self.world.step(worker, TimeoutError())

    @precondition(any_worker)
    @rule(number=pick)
    def refuse(self, number: int) -> None:
        worker = self.one(number)
        if worker.at == BEFORE:
            self.world.step(worker, Unreachable())

    @precondition(any_worker)
    @rule(number=pick)
    def kill(self, number: int) -> None:
        self.world.kill(self.one(number))

    @precondition(any_worker)
    @rule(number=pick)
    def cancel(self, number: int) -> None:
        self.world.cancel(self.one(number))

    @precondition(lambda self: self.world.orphans)
    @rule(number=pick, acts=st.booleans())
    def an_orphaned_body_ends(self, number: int, acts: bool) -> None:
        """Its caller was cancelled, and it went on; or its process is gone at last."""
        orphan = self.world.orphans.pop(number % len(self.world.orphans))
        if acts:
            self.world.act(orphan)
        else:
            self.world.gone.add(orphan.owner)

    @precondition(any_worker)
    @rule(number=pick)
    def suspect(self, number: int) -> None:
        """A paused process looks dead. A lookup's "no" must not be asked for then (ADR 0019)."""
        worker = self.one(number)
        if worker.capability != "probe":
            self.world.gone.add(worker.owner)

    @rule(seconds=st.sampled_from((1, SETTLE_S, RETENTION_S // 2, RETENTION_S)))
    def wait(self, seconds: int) -> None:
        """A call that takes a key downstream is short against the provider's memory."""
        late = [one for one in self.standing_at(BEFORE) + self.world.orphans
                if one.capability == "keyed"]  # fmt: skip
        if not late:
            self.world.watch.time += timedelta(seconds=seconds)

    @rule(number=pick, give_up=st.booleans())
    def decide(self, number: int, give_up: bool) -> None:
        if doubts := self.world.in_doubt():
            self.world.decide(doubts[number % len(doubts)], give_up=give_up)

    @rule(key=st.sampled_from(KEYS))
    def move_the_cursor(self, key: str) -> None:
        """I4: over what is decided, or certainly did not happen and is free to be made."""
        name = f"{self.capability}-{key}"
        standing = self.world.standing(name)
        event = CursorAdvanced(
            run="r", at="", step=f"s-{key}", cursor=len(list(self.events())), effects=(name,)
        )
        free = standing is not None and standing.phase is Phase.RETRYABLE
        passes = standing is not None and (free or decided(standing.phase))
        slug = None
        try:
            self.world.store.append(event)
        except BackstopError as error:
            slug = error.slug
        assert slug == (None if passes else "cursor-held")

    def events(self, key: str | None = None) -> list[Event]:
        return [
            event
            for event in self.world.store.read()
            if key is None or getattr(event, "key", None) == key
        ]

    @invariant()
    def i1_i2_every_key_has_one_record_that_follows_the_lifecycle(self) -> None:
        """I1, I2: the fence of each claim is higher than all before it."""
        lives = Lives(guarded=True)
        assert [lives.follow(event) for event in self.events()].count(None) == len(self.events())
        fences: dict[str, int] = {}
        for event in self.events():
            if isinstance(event, EffectClaimed):
                assert event.fence > fences.get(event.key, 0)
                fences[event.key] = event.fence
        for key in fences:
            assert sum(one.claimed.key == key for one in self.world.store.standings(key)) == 1

    @invariant()
    def i3_committed_is_an_end_but_for_a_repeat_on_purpose(self) -> None:
        """I3."""
        for before, event in self.pairs():
            if isinstance(before, EffectCommitted) or (
                isinstance(before, EffectResolved) and before.to == "committed"
            ):
                assert isinstance(event, EffectClaimed)
                assert event.override is not None

    @invariant()
    def i5_a_further_claim_has_a_reason_on_record(self) -> None:
        """I5: a declared error without effect, a resolution, or a repeat on purpose."""
        for before, event in self.pairs():
            if not isinstance(event, EffectClaimed):
                continue
            match before:
                case EffectFailed(final=final):
                    assert not final
                case EffectResolved(to=to):
                    assert to == "reopened" or (to == "committed" and event.override)
                case EffectCommitted():
                    assert event.override
                case _:
                    raise AssertionError((before, event))

    def pairs(self) -> list[tuple[Event, Event]]:
        """Each two events of a key that change its record, one after the other."""
        kinds = (EffectClaimed, EffectCommitted, EffectFailed, EffectInDoubt, EffectResolved)
        found, last = list[tuple[Event, Event]](), dict[str, Event]()
        for event in self.events():
            if isinstance(event, kinds):
                if event.key in last:
                    found.append((last[event.key], event))
                last[event.key] = event
        return found

    @invariant()
    def no_asking_goes_out_twice(self) -> None:
        """Neither the first call, nor any of its repeats on purpose."""
        askings = [(key, override) for key, override, _ in self.world.out]
        assert len(askings) == len(set(askings))

    @invariant()
    def nothing_is_said_to_be_done_that_is_not(self) -> None:
        """No silent skip: whoever was told so may move on."""
        for worker in self.world.workers:
            if isinstance(worker.answer, Recorded):
                key, override = worker.intent.key, worker.intent.override
                assert self.world.times(key) >= 1
                assert override is None or any(
                    (key, override) == (name, said) for name, said, _ in self.world.out
                )

    @invariant()
    def what_is_not_decided_is_listed(self) -> None:
        listed = {one.claimed.key for one in self.world.undecided()}
        for worker in self.world.workers:
            if isinstance(worker.answer, InDoubt) and worker.error is None:
                standing = self.world.standing(worker.intent.key)
                assert standing is not None
                assert decided(standing.phase) or standing.claimed.key in listed

    @invariant()
    def what_happened_against_a_decision_is_on_record(self) -> None:
        """A worker that was told "it may be out twice" left a row that says so."""
        fenced = {(e.key, e.fence) for e in self.events() if isinstance(e, EffectFenced)}
        told = sum(
            isinstance(worker.answer, InDoubt) and "did happen" in worker.answer.reason
            for worker in self.world.workers
        )
        assert len(fenced) == told

    def teardown(self) -> None:
        """I6: if owners end and resolvers run, every effect is decided; `none` may wait."""
        if not hasattr(self, "world"):
            return
        world = self.world
        for worker in self.standing_at(BEFORE, AFTER):
            world.kill(worker)
        for worker in world.workers:
            world.gone.add(worker.owner)
        world.orphans.clear()
        self.redeliver()
        world.watch.time += timedelta(seconds=SETTLE_S)
        self.redeliver()
        for one in world.undecided():
            by_hand = one.claimed.capability == "" or one.claimed.override is not None
            forgotten = one.claimed.capability == "keyed" and self.age(one) >= RETENTION_S
            assert one.phase is Phase.IN_DOUBT
            assert by_hand or forgotten
            world.decide(one)
        self.redeliver()
        assert world.undecided() == []
        self.no_asking_goes_out_twice()
        self.nothing_is_said_to_be_done_that_is_not()

    def age(self, standing: Standing) -> float:
        """How long ago this life of the effect began, in seconds."""
        began = ""
        for event in self.events(standing.claimed.key):
            match event:
                case EffectClaimed(at=at):
                    began = began or at
                case EffectCommitted() | EffectResolved(to="committed"):
                    began = ""
                case _:
                    pass
        return (self.world.watch.time - datetime.fromisoformat(began)).total_seconds()

    def redeliver(self) -> None:
        """Each undecided call comes once more, and runs through."""
        for one in self.world.undecided():
            self.through(one.claimed)


class NoCapability(Guarding):
    """A doubt waits for a person."""

    capability = "none"


class Probed(Guarding):
    """A lookup tells, once the effect had time to show."""

    capability = "probe"


class Keyed(Guarding):
    """The provider acts once on our key, as long as it remembers it."""

    capability = "keyed"


TestNoCapability = NoCapability.TestCase
TestProbed = Probed.TestCase
TestKeyed = Keyed.TestCase
TestNoCapability.settings = TestProbed.settings = TestKeyed.settings = settings(
    stateful_step_count=30
)


def test_a_lookup_is_not_believed_before_a_body_that_outlived_its_call_had_time_to_show() -> None:
    """Cancelled at 0 s, acts at 30 s, gone at 30 s: the settle time begins there, not at 0 s."""
    world = World()
    first = world.start("probe", "acme", None)
    world.cancel(first)
    world.watch.time += timedelta(seconds=SETTLE_S)
    world.act(first)
    world.gone.add(first.owner)
    assert isinstance(asked_again(world).answer, InDoubt | Held)
    world.watch.time += timedelta(seconds=SETTLE_S)
    assert isinstance(asked_again(world).answer, Recorded)
    assert world.times("probe-acme") == 1


def test_a_lookup_is_believed_once_a_body_that_outlived_its_call_would_have_shown() -> None:
    """The control: nothing went out, so it does, once the settle time after the end is over."""
    world = World()
    first = world.start("probe", "acme", None)
    world.cancel(first)
    world.gone.add(first.owner)
    assert isinstance(asked_again(world).answer, InDoubt | Held)
    assert world.times("probe-acme") == 0
    world.watch.time += timedelta(seconds=SETTLE_S)
    assert isinstance(asked_again(world).answer, Recorded)
    assert world.times("probe-acme") == 1


def asked_again(world: World) -> Worker:
    """The effect is asked for once more, and what that leads to runs through."""
    worker = world.start("probe", "acme", None)
    while worker.at:
        world.step(worker)
    return worker
