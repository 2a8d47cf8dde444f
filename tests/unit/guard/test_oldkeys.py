"""K3 and K26 at run time: what went out under another key rule is found before a claim."""

from __future__ import annotations

from collections.abc import Iterable
from threading import Barrier, Thread
from typing import Any

import pytest

from backstop.core.declaration import Declaration, Scope
from backstop.core.events import (
    EffectClaimed,
    EffectCommitted,
    EffectFailed,
    EffectInDoubt,
    EffectResolved,
)
from backstop.core.ledgerverify import verify
from backstop.guard.calls import intent_of
from backstop.guard.claims.desk import MOVED, Produced
from backstop.ports import Answer, Conflict, Held, InDoubt, Recorded
from tests.unit.guard.keyrules import NARROW, PLAIN, SLUG, Version, World, done


def test_with_one_rule_nothing_is_looked_up_and_nothing_barred() -> None:
    world = World()
    version = world.version(PLAIN)
    known = version.keys.known_as(
        call := version.call({"vendor": "acme"}), {"vendor": "acme"}, Unread(), version.header
    )
    assert known.call is call
    assert known.bars == ()
    assert version.keys.others(PLAIN, version.header) == ()


def test_what_is_only_told_otherwise_is_no_other_rule() -> None:
    """A docstring that changes would otherwise cost a little with each call, for ever."""

    def rule(note: str, *, default: object = None, name: str = "title") -> Declaration:
        member = {"type": "string", "description": note, "default": default}
        defs = {"T": {"title": note, "anyOf": [{"type": "null"}, {"title": note}]}}
        return Declaration(
            tool="order", identity=("vendor",), schema={"properties": {name: member}, "$defs": defs}
        )

    world = World()
    world.version(rule("a"))
    world.version(rule("b", default={"title": "x"}))
    world.version(rule("c", name="description"))
    version = world.version(rule("d"))
    others = version.keys.others(version.declaration, version.header)
    assert [one.schema for one in others] == [
        rule("b", default={"title": "x"}).schema,
        rule("c", name="description").schema,
    ]


class Unread:
    """A store that nobody may ask."""

    def standings(self, key: str | None = None) -> Any:
        raise AssertionError("looked up although there is one rule")


def test_k03_a_row_written_under_the_former_rule_answers() -> None:
    """K3: a pull request sets `vendor: slug`; what the store holds under its old key is found."""
    world = World()
    assert world.version(PLAIN).asks(vendor="Acme Corp") == done(1)
    assert world.version(SLUG).asks(vendor="Acme Corp") == done(1)
    assert world.out == ["Acme Corp"]
    assert len(world.rows(EffectClaimed)) == 1


def test_k03_what_is_new_goes_out_once_under_the_new_rule() -> None:
    """K3: the changed rule counts for what comes after it."""
    world = World()
    world.version(PLAIN)
    version = world.version(SLUG)
    assert version.asks(vendor="Acme Corp") == done(1)
    assert version.asks(vendor="ACME corp") == done(1)
    assert world.out == ["Acme Corp"]


def test_k03_a_version_that_is_rolled_back_finds_what_the_newer_one_did() -> None:
    """K3: every rule that has rows counts, not only the older ones."""
    world = World()
    world.version(PLAIN)
    world.version(SLUG).asks(vendor="Acme Corp")
    assert world.version(PLAIN).asks(vendor="Acme Corp") == done(1)
    assert world.out == ["Acme Corp"]


def test_k03_a_row_that_is_another_effect_by_todays_rule_does_not_answer() -> None:
    """K3: the former rule gave two orders one key; the change was made to tell them apart."""
    world = World()
    old = world.version(PLAIN)
    assert old.asks(vendor="acme", po="1") == done(1)
    assert isinstance(old.asks(vendor="acme", po="2"), Conflict)
    new = world.version(NARROW)
    assert new.asks(vendor="acme", po="2") == done(2)
    assert new.asks(vendor="acme", po="1") == done(1)
    assert world.out == ["acme", "acme"]


def test_k03_what_the_new_rule_takes_for_one_effect_with_other_arguments_is_a_conflict() -> None:
    """K3: a conflict is one under whichever key the record stands."""
    world = World()
    world.version(PLAIN).asks(vendor="Acme", amount=1)
    new = world.version(SLUG)
    assert isinstance(new.asks(vendor="Acme", amount=2), Conflict)
    assert world.out == ["Acme"]


def test_k03_a_field_that_no_longer_counts_makes_no_conflict_with_an_old_row() -> None:
    """K3: today a token is volatile; the old row's other token is no other call."""
    world = World()
    world.version(PLAIN).asks(vendor="acme", proof="t1")
    careful = Declaration(
        tool="order", identity=("vendor",), scope=Scope.AGENT, fields={"proof": ("volatile",)}
    )
    assert world.version(careful).asks(vendor="acme", proof="t2") == done(1)


def test_k03_what_failed_for_now_under_the_old_rule_is_tried_again_as_it_stands_there() -> None:
    """K3: the row that is written anew is true to the key that it is written under."""

    def refused() -> Produced:
        raise ConnectionRefusedError

    world = World()
    with pytest.raises(ConnectionRefusedError):
        world.version(PLAIN).asks(vendor="acme", proof="t1", body=refused)
    careful = Declaration(
        tool="order", identity=("vendor",), scope=Scope.AGENT, fields={"proof": ("volatile",)}
    )
    assert world.version(careful).asks(vendor="acme", proof="t2") == done(1)
    # Today's own key is barred: a version that knows nothing of the other must not claim it.
    first, again, barred = world.rows(EffectClaimed)
    assert (first.key == again.key) is not (again.key == barred.key)
    verify(world.ledger(), name="tried.jsonl")


def test_k03_a_changed_default_means_what_it_means_today() -> None:
    """K2, K3: left out under the old default is not left out under the new one."""

    def rule(default: str, *, name: str = "vendor") -> Declaration:
        return Declaration(
            tool="order",
            identity=(name, "pace"),
            schema={
                "properties": {
                    "vendor": {"type": "string"},
                    "pace": {"type": "string", "default": default},
                }
            },
        )

    world = World()
    world.version(rule("slow")).asks(vendor="acme")
    urgent = world.version(rule("fast"))
    assert urgent.asks(vendor="acme") == done(2)
    assert urgent.asks(vendor="acme", pace="slow") == done(1)
    assert world.out == ["acme", "acme"]


def test_k02_a_parameter_that_is_new_and_left_out_makes_no_conflict_with_an_old_row() -> None:
    """K2: N adds `currency="EUR"`; what the old version did is recorded for the new one."""

    def rule(*added: str) -> Declaration:
        names = {"vendor": {"type": "string"}, "amount": {"type": "integer"}}
        more = {name: {"type": "string", "default": "EUR"} for name in added}
        return Declaration(
            tool="order", identity=("vendor",), schema={"properties": {**names, **more}}
        )

    world = World()
    world.version(rule()).asks(vendor="acme", amount=1)
    new = world.version(rule("currency"))
    assert new.asks(vendor="acme", amount=1) == done(1)
    assert isinstance(new.asks(vendor="acme", amount=2), Conflict)
    assert isinstance(new.asks(vendor="acme", amount=1, currency="USD"), Conflict)
    assert new.asks(vendor="bolt", amount=1) == done(2)
    assert new.asks(vendor="bolt", amount=1) == done(2)
    assert world.version(rule()).asks(vendor="bolt", amount=1) == done(2)
    assert world.out == ["acme", "bolt"]
    assert world.rows(EffectFailed) == []
    verify(world.ledger(), name="added.jsonl")


def test_k03_a_rule_that_cannot_name_the_call_is_passed_over() -> None:
    """K3: the old identity had an argument that is gone."""
    world = World()
    world.version(Declaration(tool="order", identity=("vendor", "region")))
    assert world.version(PLAIN).asks(vendor="acme") == done(1)


def test_k03_where_the_new_rule_cannot_name_a_row_the_former_ones_word_stands() -> None:
    """K3: it lacks what names an effect today, so nobody knows whether it is this one."""
    world = World()
    world.version(PLAIN).asks(vendor="acme")
    new = world.version(NARROW)
    assert isinstance(new.asks(vendor="acme", po="1"), Conflict)
    assert world.out == ["acme"]


def test_k03_what_failed_for_now_with_other_arguments_is_begun_under_the_new_rule() -> None:
    """K3: nothing has happened under the old key, and nobody shall make it happen there."""

    def refused() -> Produced:
        raise ConnectionRefusedError

    world = World()
    old = world.version(PLAIN)
    with pytest.raises(ConnectionRefusedError):
        old.asks(vendor="Acme", amount=1, body=refused)
    assert world.version(SLUG).asks(vendor="Acme", amount=2) == done(1)
    assert isinstance(old.asks(vendor="Acme", amount=2), Held)
    assert world.out == ["Acme"]
    verify(world.ledger(), name="tried.jsonl")


def test_k03_an_effect_in_doubt_or_at_work_under_the_old_key_is_not_begun_again() -> None:
    """K3: held and in doubt answer as well as committed."""

    def lost() -> Produced:
        raise TimeoutError("no answer")

    world = World()
    old = world.version(PLAIN)
    old.asks(vendor="acme", body=lost)
    new = world.version(SLUG)
    assert isinstance(new.asks(vendor="acme"), InDoubt)
    world.store.claim(intent_of(old.call({"vendor": "bolt"}), old.journal))
    assert isinstance(new.asks(vendor="bolt"), Held)
    assert world.out == []


def test_k03_what_a_person_lets_run_again_runs_under_the_key_that_it_had() -> None:
    """K3: a provider that took our key must get the same one again."""

    def lost() -> Produced:
        raise TimeoutError("no answer")

    world = World()
    world.version(PLAIN).asks(vendor="acme", body=lost)
    (doubt,) = world.rows(EffectInDoubt)
    world.store.settle(
        EffectResolved(run="r1", at="", key=doubt.key, to="reopened", by="ann", fence=2)
    )
    assert world.version(SLUG).asks(vendor="acme") == done(1)
    assert {row.key for row in world.rows(EffectCommitted)} == {doubt.key}


def test_k03_what_is_kept_as_a_token_today_is_found_as_it_was_kept_before() -> None:
    """K3: redaction changes what rows and keys are made of; so does giving it up."""
    hidden = Declaration(tool="order", identity=("vendor",), fields={"vendor": ("redact",)})
    world = World()
    world.version(PLAIN).asks(vendor="Acme")
    careful = world.version(hidden)
    assert careful.asks(vendor="Acme") == done(1)
    assert careful.asks(vendor="Bolt") == done(2)
    assert b"Bolt" not in b"".join(world.ledger())
    assert world.version(PLAIN).asks(vendor="Acme") == done(1)
    assert world.out == ["Acme", "Bolt"]


def test_k26_a_renamed_tool_finds_the_rows_of_its_former_name() -> None:
    """K26: the name is part of the key; an alias is another key rule."""
    world = World()
    world.version(Declaration(tool="create_po", identity=("vendor",))).asks(vendor="acme")
    renamed = Declaration(tool="order", identity=("vendor",), aliases=("create_po",))
    assert world.version(renamed).asks(vendor="acme") == done(1)
    back = world.version(Declaration(tool="create_po", identity=("vendor",)))
    assert back.asks(vendor="acme") == done(1)
    assert world.out == ["acme"]


def test_k26_tools_that_share_no_name_share_no_rows() -> None:
    """K26: crm.create and billing.create are two effects, whatever their arguments."""
    world = World()
    world.version(Declaration(tool="crm.create", identity=("vendor",))).asks(vendor="1")
    billing = Declaration(tool="billing.create", identity=("vendor",))
    assert world.version(billing).asks(vendor="1") == done(2)


def test_k03_a_read_of_the_same_name_is_no_rule_for_effects() -> None:
    """K3: an effect that was declared a read has no rows of effects."""
    world = World()
    world.version(Declaration(tool="order", effect=False))
    version = world.version(PLAIN)
    assert version.keys.others(PLAIN, version.header) == ()


# --- a rolling deploy: two versions at once, of which the older one knows its own rule only ---


def test_k03_the_older_version_cannot_run_what_the_newer_one_has_claimed() -> None:
    """K3: the newer one bars the older one's key; the older one holds until it is gone."""
    world = World()
    old = world.version(PLAIN, owner="old")
    new = world.version(SLUG, owner="new")
    assert new.asks(vendor="Acme") == done(1)
    assert isinstance(old.asks(vendor="Acme"), Held)
    assert new.asks(vendor="Acme") == done(1)
    assert world.out == ["Acme"]
    (barred,) = world.rows(EffectFailed)
    assert (barred.error.type, barred.final) == (MOVED, True)
    assert barred.error.message == world.rows(EffectCommitted)[0].key


def test_k03_the_newer_version_gives_way_to_an_older_one_that_was_first_by_a_hair() -> None:
    """K3: between look and claim the older version took its key: one of the two runs."""
    world = World()
    old = world.version(PLAIN, owner="old")
    new = world.version(SLUG, owner="new")
    late = new.asks(vendor="Acme", meanwhile=lambda: old.asks(vendor="Acme"))
    assert isinstance(late, Held)
    assert world.out == ["Acme"]
    assert new.asks(vendor="Acme") == done(1)
    assert world.out == ["Acme"]


def test_k03_a_key_that_is_taken_by_another_effect_needs_no_bar() -> None:
    """K3: the older version is refused there by a conflict, ever after."""
    world = World()
    old = world.version(PLAIN, owner="old")
    new = world.version(NARROW, owner="new")
    answer = new.asks(vendor="Acme", po="2", meanwhile=lambda: old.asks(vendor="Acme", po="1"))
    assert answer == done(2)
    assert isinstance(old.asks(vendor="Acme", po="2"), Conflict)
    assert world.out == ["Acme", "Acme"]


def test_k03_two_versions_that_know_each_other_never_bar_each_other_for_good() -> None:
    """K3: rolled back and forth, with both rules known to both, one of them gets through."""

    def refused() -> Produced:
        raise ConnectionRefusedError

    world = World()
    world.version(PLAIN)
    new = world.version(SLUG, owner="new")
    back = world.version(PLAIN, owner="back")

    def tried() -> None:
        with pytest.raises(ConnectionRefusedError):
            back.asks(vendor="Acme", body=refused)

    # The key of the newer rule is barred now, and the effect has not happened.
    assert isinstance(new.asks(vendor="Acme", meanwhile=tried), Held)
    assert new.asks(vendor="Acme") == done(1)
    assert back.asks(vendor="Acme") == done(1)
    assert world.out == ["Acme"]


@pytest.mark.parametrize("owners", [("old", "new"), ("new", "old")])
def test_k03_racing_threads_of_two_rules_act_once(owners: tuple[str, str]) -> None:
    """K3: whatever the order, the store's uniqueness decides."""
    for _ in range(50):
        world = World()
        versions = {
            "old": world.version(PLAIN, owner="old"),
            "new": world.version(SLUG, owner="new"),
        }
        answers = _race(versions[owner] for owner in owners)
        assert world.out == ["Acme"]
        assert all(isinstance(answer, Recorded | Held) for answer in answers)
        assert versions["new"].asks(vendor="Acme") == done(1)
        verify(world.ledger(), name="raced.jsonl")


def _race(versions: Iterable[Version]) -> list[Answer]:
    several = list(versions)
    start, answers = Barrier(len(several)), list[Answer]()

    def go(version: Version) -> None:
        start.wait()
        answers.append(version.asks(vendor="Acme"))

    threads = [Thread(target=go, args=(version,)) for version in several]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers
