"""``backstop effects list|resolve`` on a real store."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from backstop.core.events import EffectFenced, EffectResolved
from tests.e2e.command import Ran, backstop, refused
from tests.e2e.stored import told, told_and_killed

DOUBTS = """
agent desk
tool pay identity ref
run r1
step s1
commit pay{ref: 1} -> {ok: true}
doubt pay{ref: 2}
flop pay{ref: 3}
claim pay{ref: 4}
"""
LEFT = """
agent desk
tool pay identity ref
run r1
step s1
claim pay{ref: 7}
"""
NOTHING = """
agent desk
run r1
"""


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/s.db"


def on(url: str, *arguments: str) -> tuple[str, ...]:
    return ("effects", *arguments, "--store", url, "--agent", "desk")


def listed(url: str, *options: str) -> list[dict[str, Any]]:
    ran = backstop(*on(url, "list", "--format", "json", *options))
    assert (ran.code, ran.err) == (0, "")
    found: list[dict[str, Any]] = json.loads(ran.out)["effects"]
    return found


def key_of(url: str, ref: int) -> str:
    (key,) = (one["key"] for one in listed(url) if one["args"]["ref"] == ref)
    return str(key)


def resolved(url: str, ref: int, *options: str) -> Ran:
    return backstop(*on(url, "resolve", key_of(url, ref)[:12], *options, "--by", "ana"))


def test_an_empty_list_says_so(url: str) -> None:
    told(url, NOTHING)
    ran = backstop(*on(url, "list"))
    assert (ran.code, ran.err) == (0, "")
    assert ran.out == f"no effect waits for a decision in {url}\n"


def test_everything_that_is_not_decided_is_listed_with_what_to_type(url: str) -> None:
    store = told(url, DOUBTS)
    phases = {one["args"]["ref"]: one["phase"] for one in listed(url)}
    assert phases == {2: "in doubt", 3: "retryable", 4: "executing"}
    assert [one["args"]["ref"] for one in listed(url, "--in-doubt")] == [2]
    ran = backstop(*on(url, "list", "--in-doubt"))
    key = key_of(url, 2)[:12]
    assert ran.out.startswith(f"1 effect not decided, 1 in doubt, in {url}\n\n{key}  pay  in doubt")
    assert f"backstop effects resolve {key} --store {url} --agent desk --failed" in ran.out
    assert list(store.standings())


def test_what_may_be_out_twice_is_loud(url: str) -> None:
    store = told(url, DOUBTS)
    key = key_of(url, 2)
    store.append(EffectFenced(run="r1", at="", key=key, fence=1))
    ran = backstop(*on(url, "list", "--in-doubt"))
    assert ran.out.startswith(f"MAY BE OUT TWICE: 1 effect\n  {key[:12]}  pay\n")


def test_an_owner_that_was_killed_is_seen_to_be_gone_and_its_effect_can_be_decided(
    url: str,
) -> None:
    told_and_killed(url, LEFT)
    (left,) = listed(url, "--in-doubt")
    assert (left["phase"], left["owner_is"], left["in_doubt"]) == ("executing", "gone", True)
    ran = resolved(url, 7, "--committed", '{"id": 7}', "--reason", "the bank has it")
    assert (ran.code, ran.err) == (0, "")
    assert "run r1, step s1: committed, by person:ana" in ran.out
    assert listed(url) == []
    assert "committed, not in doubt: it is decided" in refused(
        "effect-not-in-doubt", *on(url, "resolve", left["key"], "--failed")
    )


def test_a_word_is_kept_with_who_said_it_and_why(url: str) -> None:
    store = told(url, DOUBTS)
    assert resolved(url, 2, "--failed", "--reason", "lost").code == 0
    last = list(store.read())[-1]
    assert isinstance(last, EffectResolved)
    assert (last.to, last.by, last.reason) == ("failed", "person:ana", "lost")


def test_a_retry_is_refused_while_the_effect_may_yet_show(url: str) -> None:
    told(url, DOUBTS)
    key = key_of(url, 2)
    message = refused("effect-settling", *on(url, "resolve", key, "--retry"))
    assert "s yet" in message
    assert resolved(url, 2, "--retry", "--force").code == 0
    assert {one["args"]["ref"]: one["phase"] for one in listed(url)}[2] == "reopened"


def test_what_its_owner_is_at_cannot_be_decided(url: str) -> None:
    store = told(url, DOUBTS)
    assert "it is alive" in refused(
        "effect-running", *on(url, "resolve", key_of(url, 4), "--failed")
    )
    assert list(store.standings())


def test_bad_words_are_one_line(url: str, tmp_path: Path) -> None:
    told(url, DOUBTS)
    key = key_of(url, 2)
    refused("usage", *on(url, "resolve", key))
    refused("usage", *on(url, "resolve", key, "--failed", "--retry"))
    refused("usage", *on(url, "resolve", key, "--committed", "done"))
    refused("usage", *on(url, "resolve", key[:5], "--failed"))
    refused("effect-unknown", *on(url, "resolve", "ffffffffffff", "--failed"))
    refused("store-missing", *on(f"sqlite:///{tmp_path}/none.db", "list"))
    refused("store-url", *on("redis://host", "list"))
    refused("config-store", "effects", "list", "--agent", "airline")


def test_the_store_is_found_by_the_configuration(url: str, tmp_path: Path) -> None:
    told(url, DOUBTS)
    config = tmp_path / "b.yaml"
    config.write_text(f"version: 1\nagents: {{desk: {{store: '{url}'}}}}\n", encoding="utf-8")
    ran = backstop("effects", "list", "--config", config)
    assert ran.code == 0
    assert f"--config {config} --committed RESULT" in ran.out
