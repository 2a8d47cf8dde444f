"""Each divergence is explained in one sentence, always the same."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from backstop.core.divergence import Kind, Reason
from backstop.reports.explain import ABSENT, anchor, at, rule, sentence
from tests.verdicts import CHANGED, DROPPED, NEW, RELABELLED, divergence, half

KINDS = {
    Kind.DUPLICATE: [
        Reason.RELABELLED,
        Reason.RETARGETED,
        Reason.IDENTITY_UNKNOWN,
        Reason.REPEATED,
        Reason.REKEYED,
        Reason.RENAMED,
        Reason.MOVED,
    ],
    Kind.MUTATED: [Reason.CHANGED, Reason.CONFLICT, Reason.MOVED_EARLIER],
    Kind.MISSING: [Reason.DROPPED],
    Kind.EXTRA: [Reason.NEW, Reason.SWALLOWED, Reason.DELIBERATE],
}
ALL = [(kind, reason) for kind, reasons in KINDS.items() for reason in reasons]


def test_every_reason_belongs_to_a_kind() -> None:
    assert {reason for _, reason in ALL} == set(Reason)


@pytest.mark.parametrize(("kind", "reason"), ALL)
def test_every_reason_is_one_sentence_that_names_the_tool(kind: Kind, reason: Reason) -> None:
    one = divergence(kind, reason, half({"a": 1}, tool="old_pay"), half({"a": 2}), paths=("/a",))
    told = sentence(one)
    assert "pay" in told
    assert told.endswith(".")
    assert "{" not in told
    assert told == sentence(one)


@pytest.mark.parametrize(("kind", "reason"), ALL)
def test_every_reason_has_a_section_in_the_docs(kind: Kind, reason: Reason) -> None:
    text = (Path(__file__).parents[3] / "docs" / "divergences.md").read_text(encoding="utf-8")
    headings = re.findall(r"^## (.*)$", text, re.MULTILINE)
    assert f"{kind.value}: {reason.value}" in headings
    one = divergence(kind, reason, half({}), half({}))
    slugs = {heading.lower().replace(":", "").replace(" ", "-") for heading in headings}
    assert anchor(one) in slugs
    section = text.split(f"## {kind.value}: {reason.value}\n", 1)[1].split("\n## ", 1)[0]
    assert "*Example.*" in section
    assert "*Remedy.*" in section


def test_a_relabelled_call_names_what_is_written_another_way() -> None:
    assert sentence(RELABELLED) == (
        "It would call order again for work that is done, written another way at /vendor_id "
        "(case, punctuation): the key is new, so the guard would not stop it."
    )


def test_a_tool_name_with_braces_is_no_template() -> None:
    one = divergence(Kind.MISSING, Reason.DROPPED, half({}), None, tool="{names.__class__}")
    assert "{names.__class__}" in sentence(one)


def test_many_paths_are_counted_not_listed() -> None:
    paths = tuple(f"/{name}" for name in "abcdef")
    one = divergence(Kind.MUTATED, Reason.CHANGED, half({}), half({}), paths=paths)
    assert "/a, /b, /c and 3 more" in sentence(one)


def test_the_rule_that_would_help_is_a_line_of_the_configuration() -> None:
    assert rule(RELABELLED) == "order: {fields: {vendor_id: slug}}"
    assert rule(CHANGED) is None
    assert rule(DROPPED) is None
    assert rule(NEW) is None


def test_the_rule_names_only_the_arguments_that_it_makes_equal() -> None:
    one = divergence(
        Kind.DUPLICATE,
        Reason.RELABELLED,
        half({"id": "A", "note": "x", "same": 1, "gone": 1}),
        half({"id": "a", "note": "y", "same": 1, "new": 1}),
        paths=("/gone", "/id", "/new", "/note"),
        suggestion="casefold",
    )
    assert rule(one) == "pay: {fields: {id: casefold}}"


@pytest.mark.parametrize(
    ("pointer", "text"),
    [
        ("/lines/1/qty", "2"),
        ("/po~1ref", '"7"'),
        ("/lines/2", ABSENT),
        ("/lines/x", ABSENT),
        ("/nothing", ABSENT),
        ("/po~1ref/deeper", ABSENT),
        ("", '{"lines":[{"qty":1},{"qty":2}],"po/ref":"7"}'),
    ],
)
def test_a_pointer_finds_its_value(pointer: str, text: str) -> None:
    assert CHANGED.recorded is not None
    assert at(CHANGED.recorded.args, pointer) == text
