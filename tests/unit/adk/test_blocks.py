"""Modules cut into blocks: what changed, and marks that change nothing else."""

from __future__ import annotations

import inspect
import linecache
import textwrap
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from backstop.adk.blocks import MARKS, MODULE, Block, blocks, marked

SOURCE = '''
"""A module."""
from __future__ import annotations

LIMIT = 10


def plain(n):
    """Says how much it is."""
    if n > LIMIT:
        return "much"
    for i in range(n):
        if i == 3:
            continue
        try:
            n += int("x")
        except ValueError:
            n += 1
        else:
            n += 2
        finally:
            n += 3
    else:
        n += 4
    match n:
        case 1:
            return "one"
        case _:
            pass
    return "little"


class Thing:
    """A thing."""

    def method(self, key=lambda x: x):
        def inner():
            nonlocal self
            return self
        return inner()


async def later():
    yield 1
    while True:
        break
    yield 2


def silent():
    """Only says this."""
'''


def cut(text: str) -> list[Block]:
    return blocks(textwrap.dedent(text).encode())


def differing(old: str, new: str) -> set[tuple[str, int]]:
    """The blocks of `new` that `old` does not have, as name and line."""
    known = {(one.name, one.says, one.way) for one in cut(old)}
    return {(one.name, one.line) for one in cut(new) if (one.name, one.says, one.way) not in known}


def test_functions_are_named_as_python_names_them() -> None:
    names = [one.name for one in cut(SOURCE) if one.is_first]
    assert names == [
        MODULE,
        "plain",
        "Thing.method",
        "Thing.method.<locals>.inner",
        "later",
        "silent",
    ]


def test_comments_docstrings_and_layout_change_nothing() -> None:
    other = SOURCE.replace('"""Says how much it is."""', '"""Else."""').replace(
        '"""A module."""', ""
    )
    other = other.replace("    return inner()", "    # why\n\n        return  inner( )")
    assert {one[0] for one in differing(SOURCE, other)} == set()


@pytest.mark.parametrize(
    ("old", "new", "where"),
    [
        ("n += 4", "n += 5", "plain"),
        ("n += 1\n", "n += 7\n", "plain"),
        ("nonlocal self", "nonlocal self; 1", "Thing.method.<locals>.inner"),
        ("LIMIT = 10", "LIMIT = 11", MODULE),
        ("key=lambda x: x", "key=lambda x: 1", "Thing.method"),
        ("yield 2", "yield 3", "later"),
    ],
)
def test_a_change_is_where_it_was_made(old: str, new: str, where: str) -> None:
    assert SOURCE.count(old) == 1
    assert {name for name, _ in differing(SOURCE, SOURCE.replace(old, new))} == {where}


def test_a_changed_condition_changes_what_it_leads_to() -> None:
    old = "def f(n):\n    if n > 1:\n        a()\n    else:\n        b()\n    c()\n"
    assert differing(old, old.replace("n > 1", "n > 2")) == {("f", 1), ("f", 3), ("f", 5)}
    swapped = old.replace("a()", "b()", 1).replace("        b()\n    c", "        a()\n    c")
    assert differing(old, swapped) == {("f", 3), ("f", 5)}


def test_what_follows_an_early_return_is_a_block_of_its_own() -> None:
    old = "def f(n):\n    if n:\n        return 1\n    tell()\n"
    assert differing(old, old.replace("tell", "warn")) == {("f", 4)}


def test_what_only_a_type_checker_or_a_shell_runs_is_left_out() -> None:
    old = "if TYPE_CHECKING:\n    a()\nif __name__ == '__main__':\n    b()\n"
    assert differing(old, old.replace("a()", "c()").replace("b()", "d()")) == set()
    assert len(cut(old)) == 1


@pytest.fixture
def marks() -> Iterator[bytearray]:
    """The builtin in which marked code writes."""
    import builtins

    reached = bytearray(200)
    vars(builtins)[MARKS] = reached
    yield reached
    del vars(builtins)[MARKS]


def run(text: str, path: Path) -> ModuleType:
    """The marked module, run from a file."""
    path.write_text(text)
    tree, _ = marked(text.encode(), str(path), 0)
    module = ModuleType(path.stem)
    exec(compile(tree, str(path), "exec", dont_inherit=True), vars(module))  # noqa: S102
    linecache.checkcache(str(path))
    return module


def lines(marks: bytearray, text: str) -> set[int]:
    """The first lines of the blocks that were reached."""
    return {one.line for n, one in enumerate(blocks(text.encode())) if n and marks[n]}


def test_marks_say_which_blocks_ran(marks: bytearray, tmp_path: Path) -> None:
    module = run(SOURCE, tmp_path / "m.py")
    assert lines(marks, SOURCE) == set()
    assert module.plain(11) == "much"
    assert lines(marks, SOURCE) == {8, 11}
    assert module.plain(0) == "little"
    assert lines(marks, SOURCE) == {8, 11, 12, 24, 25, 29, 30}
    (silent,) = [one.line for one in cut(SOURCE) if one.name == "silent"]
    module.silent()
    assert silent in lines(marks, SOURCE)


def test_source_signature_and_docstring_are_as_they_were(marks: bytearray, tmp_path: Path) -> None:
    module: Any = run(SOURCE, tmp_path / "m.py")
    assert module.__doc__ == "A module."
    assert module.plain.__doc__ == "Says how much it is."
    assert module.silent.__doc__ == "Only says this."
    assert inspect.getsource(module.silent).startswith("def silent():")
    assert inspect.getsource(module.Thing.method).lstrip().startswith("def method")
    assert inspect.isasyncgenfunction(module.later)
    assert isinstance(module.Thing().method(), module.Thing)
    assert not [name for name in vars(module) if "backstop" in name]


def test_a_traceback_names_the_right_lines(marks: bytearray, tmp_path: Path) -> None:
    text = 'def f(n):\n    """Doc."""\n    if n:\n        x = 1\n        raise ValueError\n'
    module = run(text, tmp_path / "m.py")
    with pytest.raises(ValueError, match=r"^$") as caught:
        module.f(1)
    assert [frame.lineno for frame in traceback.extract_tb(caught.tb)][-1] == 5


def test_marks_fit_wherever_statements_stand(marks: bytearray, tmp_path: Path) -> None:
    text = textwrap.dedent(
        """
        def f(a): return a
        class C:
            if True:
                def g(self): return 1
            x: int = 3
        def h():
            global COUNT
            COUNT = 1
            class D:
                def m(self): return __class__
            with open(__file__) as one: first = one.readline()
            if not first: return
            try:
                raise ExceptionGroup("e", [ValueError()])
            except* ValueError:
                pass
            return D().m().__qualname__
        """
    )
    path = tmp_path / "m.py"
    path.write_text(text)
    tree, count = marked(text.encode(), str(path), 0)
    space: dict[str, Any] = {"__name__": "m", "__file__": str(path)}
    exec(compile(tree, str(path), "exec", dont_inherit=True), space)  # noqa: S102
    assert (space["f"](2), space["C"]().g(), space["h"]()) == (2, 1, "h.<locals>.D")
    assert count == len(blocks(text.encode()))


def test_what_no_parser_reads_is_refused() -> None:
    with pytest.raises(SyntaxError):
        blocks(b"def")
