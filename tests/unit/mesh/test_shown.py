"""What a turn was shown is told alike, whether it is looked at anew or from turn to turn."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pytest
from google.genai import types

from backstop.adk.requests import RequestDigester
from backstop.mesh.shown import Shown
from backstop.mesh.trail import Trail


def content(*said: str | Mapping[str, object]) -> types.Content:
    parts = [
        types.Part(text=one)
        if isinstance(one, str)
        else types.Part.from_function_response(name="look", response=dict(one))
        for one in said
    ]
    return types.Content(role="user", parts=parts)


class Counting(RequestDigester):
    """Counts the parts that it is asked to digest."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = 0

    def part(self, part: types.Part) -> str:
        self.asked += 1
        return super().part(part)


def looked(shown: Shown, trail: Trail, contents: Sequence[types.Content]) -> tuple[set[str], int]:
    """The steps that a request of these contents was made from, and how many parts are nobody's."""
    shown.look(contents, RequestDigester(), trail.parts)
    shown.listen(trail.heard, trail.quiet)
    return {*shown.fresh}, len(shown.nobodys)


@pytest.fixture
def trail() -> Trail:
    made, parts = Trail(run="r"), RequestDigester()
    for number, said in enumerate(("one", "two", "three")):
        made.says(f"s{number}", parts.part(types.Part(text=said)))
    return made


def requests() -> Iterator[tuple[str, list[types.Content]]]:
    one, two = content("one"), content("two")
    yield "more is said", [one, two, content("three")]
    yield "the same is said again", [one, two]
    yield "less is said", [one]
    yield "the end is another", [one, content("three")]
    yield "the beginning is another", [content("nobody's"), two]
    yield "more in one content", [one, content("two", "three")]
    yield "nothing", []


@pytest.mark.parametrize(("name", "later"), list(requests()), ids=[name for name, _ in requests()])
def test_a_later_request_is_read_as_if_it_were_the_first(
    trail: Trail, name: str, later: list[types.Content]
) -> None:
    shown = Shown()
    looked(shown, trail, [content("one"), content("two")])
    assert looked(shown, trail, later) == looked(Shown(), trail, later), name


def test_who_says_the_same_words_later_is_read_as_well(trail: Trail) -> None:
    shown, said = Shown(), [content("one"), content("new")]
    assert looked(shown, trail, said) == ({"s0"}, 1)
    for step, text in (("s8", "new"), ("s9", "one"), ("s7", "unheard")):
        trail.says(step, RequestDigester().part(types.Part(text=text)))
    assert looked(shown, trail, said) == ({"s0", "s8", "s9"}, 0)


@pytest.mark.parametrize("flag", [True, 1.0, "1", None, [1]])
def test_an_answer_that_changed_where_it_lies_is_another(trail: Trail, flag: object) -> None:
    shown, said = Shown(), content({"ok": 1})
    trail.says("s5", RequestDigester().part(content({"ok": 1}).parts[0]))  # type: ignore[index]
    assert looked(shown, trail, [said]) == ({"s5"}, 0)
    assert looked(shown, trail, [said.model_copy(deep=True)]) == ({"s5"}, 0)
    said.parts[0].function_response.response["ok"] = flag  # type: ignore[index, union-attr]
    # A number is one value, whatever its type; a flag is none.
    found = ({"s5"}, 0) if type(flag) is float else (set[str](), 1)
    assert looked(shown, trail, [said]) == found


def test_what_was_joined_is_read_by_its_join_until_less_is_shown(trail: Trail) -> None:
    shown, whole = Shown(), [content("one"), content("two")]
    assert looked(shown, trail, whole) == ({"s0", "s1"}, 0)
    shown.join("j")
    assert (looked(shown, trail, [*whole, content("three")]), shown.joined) == (({"s2"}, 0), "j")
    # Another order: all that it stands for is shown all the same.
    assert (looked(shown, trail, whole[::-1]), shown.joined) == ((set(), 0), "j")
    assert (looked(shown, trail, whole[:1]), shown.joined) == (({"s0"}, 0), None)


def test_a_step_that_said_nothing_is_read_by_whoever_would_have_been_shown_it(trail: Trail) -> None:
    shown = Shown()
    trail.quiet.append("s4")
    assert looked(shown, trail, [content("one")]) == ({"s0", "s4"}, 0)
    shown.look([content("two")], RequestDigester(), trail.parts)
    shown.listen(trail.heard, ())
    assert set(shown.fresh) == {"s1"}


def test_a_turn_digests_only_what_is_new_however_long_the_conversation_is(trail: Trail) -> None:
    parts, shown = Counting(), Shown()
    said = [content(f"{number}") for number in range(500)]
    shown.look(said, parts, trail.parts)
    assert parts.asked == 500
    for number in range(3):
        said = [one.model_copy(deep=True) for one in said]
        said.append(content({"ok": number}))
        shown.look(said, parts, trail.parts)
    assert parts.asked == 503
