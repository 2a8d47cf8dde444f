"""D7: what two versions differ in, and no run reached."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from backstop.core.unshown import Sort, Unshown
from backstop.replay import coverage
from backstop.replay.code import Code, Exercised, Reached
from backstop.replay.wire import Ready, ToolSeen

AGENT = """
def ask(n):
    if n > 100:
        return escalate(n)
    return n


def escalate(n):
    return -n
"""


def version(
    files: Mapping[str, str] | str = AGENT,
    *,
    skipped: tuple[str, ...] = (),
    opened: tuple[str, ...] = (),
    bodies: tuple[str, ...] = (),
) -> Exercised:
    """A version of which everything was reached but blocks that begin with a text."""
    texts = {"agent.py": files} if isinstance(files, str) else files
    code = Code.of((name, text.encode()) for name, text in texts.items())
    reached = frozenset(
        (name, number)
        for name, blocks in code.modules.items()
        for number, block in enumerate(blocks)
        if not any(skip in texts[name].splitlines()[block.line - 1] for skip in skipped)
    )
    return Exercised(
        code=code,
        reached=Reached(blocks=reached, files=frozenset(opened)),
        bodies=frozenset(bodies),
    )


def unreached(base: Exercised, candidate: Exercised) -> tuple[str, ...]:
    """What is told of the places."""
    return tuple(one.told for one in coverage.unreached(base, candidate))


CUT = AGENT.partition("def escalate")[0]
BEYOND = ("return escalate", "def escalate")
"""What the runs do not reach."""


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("return -n", "return 0", "agent.py:8 escalate changed and no run reached it"),
        (
            "return escalate(n)",
            "return escalate(n + 1)",
            "agent.py:4 ask: a branch changed and no run reached it",
        ),
        ("n > 100", "n > 50", "agent.py:4 ask: a branch changed and no run reached it"),
        ("def escalate(n)", "def escalate(m)", "agent.py:8 escalate changed and no run reached it"),
        (
            "def escalate(n):\n    return -n\n",
            "",
            "agent.py:8 escalate was removed and no run had reached it",
        ),
        (
            "    if n > 100:\n        return escalate(n)\n",
            "",
            "agent.py:2 ask lost a branch that no run had reached",
        ),
    ],
)
def test_d7_a_change_that_no_run_reached_is_named(old: str, new: str, said: str) -> None:
    """D7: coverage, never a pass in silence."""
    assert AGENT.count(old) == 1
    changed = AGENT.replace(old, new)
    assert unreached(version(skipped=BEYOND), version(changed, skipped=BEYOND)) == (said,)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("    return n\n", "    return n + 1\n"),
        ("def escalate(n):\n", "# why\ndef escalate(n):\n    '''Words.'''\n"),
        ("        return escalate(n)", "        return  escalate( n )  # why"),
    ],
)
def test_d7_what_was_reached_or_says_the_same_is_not_named(old: str, new: str) -> None:
    """D7: a changed helper that runs is judged by what it asked for; a comment by nothing."""
    assert AGENT.count(old) == 1
    changed = AGENT.replace(old, new)
    assert unreached(version(skipped=BEYOND), version(changed, skipped=BEYOND)) == ()


def test_d7_new_code_that_no_run_reached_is_named() -> None:
    found = unreached(
        version(),
        version(
            {"agent.py": AGENT, "more.py": "X = 1\ndef mail():\n    return 1\n"},
            skipped=("def mail",),
        ),
    )
    assert found == ("more.py:2 mail is new and no run reached it",)


def test_d7_a_module_that_nobody_imports_is_named_once() -> None:
    texts = {"agent.py": AGENT, "odd.py": "X = 1\n"}
    base = version(texts, skipped=("X =",))
    changed = version({**texts, "odd.py": "X = 2\n"}, skipped=("X =",))
    assert unreached(base, changed) == ("odd.py:1 the module changed and no run reached it",)
    assert unreached(base, version()) == (
        "odd.py:1 the module was removed and no run had reached it",
    )


def test_d7_a_function_that_moved_and_runs_is_not_named() -> None:
    moved = {
        "agent.py": CUT,
        "more.py": "def escalate(n):\n    return 1\n",
    }
    assert unreached(version(skipped=BEYOND), version(moved, skipped=("return escalate",))) == ()


def test_d7_tool_bodies_are_compared_apart() -> None:
    """They never run, so every change in one would be named a second time."""
    base = version(skipped=BEYOND, bodies=("agent.py:escalate",))
    inner = AGENT.replace("return -n", "def inner(): pass\n    return 0")
    changed = version(inner, skipped=(*BEYOND, "def inner"), bodies=("agent.py:escalate",))
    assert unreached(base, changed) == ()
    assert unreached(base, version(CUT, skipped=BEYOND)) == ()


def test_d7_a_function_that_is_made_a_tool_or_none_is_not_called_new_or_removed() -> None:
    tool, plain = version(skipped=BEYOND, bodies=("agent.py:escalate",)), version(skipped=BEYOND)
    assert unreached(tool, plain) == (
        "agent.py:8 escalate is no tool any more and no run reached it",
    )
    assert unreached(plain, tool) == (
        "agent.py:8 escalate is a tool's body now and no run had reached it",
    )


def test_d7_of_two_tools_of_one_name_neither_hides_the_other() -> None:
    def ready(**codes: str) -> Ready:
        tools = [ToolSeen(agent=agent, tool="pay", code=code) for agent, code in codes.items()]
        return Ready(id=1, protocol=1, adk="", python="", app="", agents=[], tools=tools)

    def told(before: Ready, after: Ready) -> list[str]:
        return [one.subject for one in coverage.uncovered(after, base=before, recorded={})]

    base = ready(desk="a", clerk="b")
    assert told(base, ready(desk="other", clerk="b")) == ["pay"]
    assert told(base, ready(desk="a", clerk="other")) == ["pay"]
    assert told(base, ready(clerk="b", desk="a")) == []
    assert told(ready(desk="a"), ready(desk="a", clerk="a")) == []


def test_d7_files_that_are_no_code_count_unless_they_were_read() -> None:
    base = version({"agent.py": AGENT, "prompt.md": "a", "old.txt": "a", "used.txt": "a"})
    texts = {"agent.py": AGENT, "prompt.md": "b", "new.txt": "a", "used.txt": "b"}
    assert unreached(base, version(texts, opened=("used.txt",))) == (
        "new.txt is new and no run read it",
        "old.txt was removed and no run had read it",
        "prompt.md changed and no run read it",
    )
    assert unreached(base, base) == ()


def test_d7_what_this_python_cannot_read_is_never_taken_for_reached() -> None:
    base = version({"agent.py": "def ("})
    changed = version({"agent.py": "def (("}, opened=("agent.py",))
    assert unreached(base, base) == ()
    (said,) = unreached(base, changed)
    assert said.startswith("agent.py changed, and this Python cannot read it")


def test_d7_many_places_are_counted_not_listed() -> None:
    texts = {f"n{n:02}.txt": "a" for n in range(40)}
    found = unreached(version(), version({"agent.py": AGENT, **texts}))
    assert len(found) == 26
    assert found[-1] == "15 more places changed and no run reached them"


def made(asked: tuple[str, ...] = (), **setups: str) -> Exercised:
    """A version with agents, of which some were asked."""
    return Exercised(reached=Reached(agents=frozenset(asked)), setups=setups)


def test_d7_an_agent_that_changed_and_was_never_asked_is_named() -> None:
    """D7: its instruction is read on import, and yet nothing shows what it does."""
    base = made(clerk="1", refunds="1", old="1")
    changed = made(("clerk",), clerk="2", refunds="2", new="1")
    assert unreached(base, changed) == (
        "agent new is new and no run asked it",
        "agent old was removed and no run had asked it",
        "agent refunds changed and no run asked it",
    )
    assert unreached(made(("old",), clerk="1", old="1"), made(clerk="1")) == ()


@pytest.mark.parametrize(
    "beside",
    ["README.md", "tests/test_agent.py", "test_agent.py", "desk.evalset.json", "a.test.json"],
)
def test_d7_an_agents_tests_and_read_me_are_no_part_of_it(beside: str) -> None:
    before = version({"agent.py": AGENT, beside: "one\n"})
    assert unreached(before, version({"agent.py": AGENT, beside: "two\n"})) == ()


def test_d7_a_prompt_is_part_of_the_agent_wherever_it_stands() -> None:
    before = version({"agent.py": AGENT, "docs/policy.md": "one\n"})
    after = version({"agent.py": AGENT, "docs/policy.md": "two\n"})
    assert unreached(before, after) == ("docs/policy.md changed and no run read it",)


def _escalating(amount: str) -> Exercised:
    return version(AGENT.replace("return -n", f"return {amount}"), skipped=BEYOND)


def named(base: Exercised, candidate: Exercised) -> Unshown:
    """The one place that differs."""
    (found,) = coverage.unreached(base, candidate)
    return found


def test_d7_a_place_is_named_by_its_code_before_and_after_and_not_by_its_line() -> None:
    base = version(skipped=BEYOND)
    found = named(base, _escalating("0"))
    assert (found.sort, found.subject) == (Sort.CODE, "agent.py:escalate")
    lower = AGENT.replace("def escalate", "# moved\n\n\ndef escalate").replace(
        "return -n", "return 0"
    )
    moved = named(base, version(lower, skipped=BEYOND))
    assert moved.told != found.told
    assert moved.fingerprint("desk") == found.fingerprint("desk")


def test_d7_one_more_edit_of_the_place_makes_it_another_finding() -> None:
    """The control of the above: whoever accepted the one has not seen the other."""
    base = version(skipped=BEYOND)
    names = {
        named(base, _escalating("0")).fingerprint("desk"),
        named(base, _escalating("1")).fingerprint("desk"),
        named(_escalating("2"), _escalating("0")).fingerprint("desk"),
        named(base, _escalating("0")).fingerprint("clerk"),
    }
    assert len(names) == 4


def test_d7_what_a_list_has_no_room_for_is_one_finding_that_any_further_change_renames() -> None:
    def many(last: str) -> tuple[Unshown, ...]:
        files = {f"f{number:02}.txt": "new" for number in range(39)}
        after = version({"agent.py": AGENT, **files, "f39.txt": last})
        return coverage.unreached(version({"agent.py": AGENT}), after)

    one, other = many("a"), many("b")
    assert (one[-1].sort, one[-1].places) == (Sort.MORE, 15)
    assert sum(place.places for place in one) == 40
    assert one[:-1] == other[:-1]
    assert one[-1].fingerprint("desk") != other[-1].fingerprint("desk")
