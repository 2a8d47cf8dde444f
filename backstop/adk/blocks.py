"""A module cut into blocks: stretches of code of which all runs or, exceptions apart, nothing.

The driver compares the blocks of two versions; the harness marks those that a run reaches.
Both cut with this file, so that a block's number means the same on either side.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple, TypeAlias

MODULE: Final = "<module>"
"""The qualified name of code that runs on import."""
MARKS: Final = "__backstop_reached__"
"""The builtin in which a marked block writes its number down."""

_Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef
_EXITS: Final = (ast.Return, ast.Raise, ast.Break, ast.Continue)
_SCOPES: Final = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


class Block(NamedTuple):
    """A block of a function (or of `MODULE`): what it says, and what leads to it.

    `line` is its first line, of a function's first block that of its `def`. `says` and `way`
    are digests that comments, docstrings and layout do not change.
    """

    name: str
    line: int
    says: str
    way: str
    is_first: bool


class _Cut(NamedTuple):
    """Where the mark of a block goes: before the statement at `at` of `body`."""

    body: list[ast.stmt]
    at: int
    line: int


def blocks(source: bytes) -> list[Block]:
    """The blocks of a module, a block's number being its place; the first is the module's.

    Raises `SyntaxError`, `ValueError` or `RecursionError` for what this Python cannot parse.
    """
    return _Cutter(ast.parse(source)).blocks


def marked(source: bytes, name: str, first: int) -> tuple[ast.Module, int]:
    """The module of file `name` with a mark at every block's start, and how many blocks it has.

    The block numbered n sets ``MARKS[first + n]``, but for block 0: whoever runs the module
    knows. Line numbers stay. Raises as `blocks` does.
    """
    tree = ast.parse(source, name)
    cutter = _Cutter(tree)
    numbered = list(enumerate(cutter.cuts))
    for number, cut in reversed(numbered[1:]):
        cut.body.insert(cut.at, _mark(first + number, cut))
    return tree, len(numbered)


def block_at(source: bytes, line: int) -> int:
    """The number of the block that a line of a module belongs to.

    Raises as `blocks` does.
    """
    cuts = _Cutter(ast.parse(source)).cuts
    found = [
        (_last_line(statement) - _first_line(statement), -number)
        for number, cut in enumerate(cuts)
        for statement in cut.body[cut.at : _end_of(cut, cuts)]
        if _first_line(statement) <= line <= _last_line(statement)
    ]
    _, number = min(found, default=(0, 0))
    return -number


def _end_of(cut: _Cut, cuts: Sequence[_Cut]) -> int:
    """Where in its list of statements the next block begins."""
    after = (other.at for other in cuts if other.body is cut.body and other.at > cut.at)
    return min(after, default=len(cut.body))


def _first_line(node: ast.stmt) -> int:
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(one.lineno for one in decorators)])


def _last_line(node: ast.stmt) -> int:
    return node.end_lineno or node.lineno


def _mark(number: int, cut: _Cut) -> ast.stmt:
    target = ast.Subscript(
        value=ast.Name(id=MARKS, ctx=ast.Load()), slice=ast.Constant(number), ctx=ast.Store()
    )
    mark = ast.Assign(targets=[target], value=ast.Constant(1))
    for node in ast.walk(mark):
        if isinstance(node, ast.stmt | ast.expr):
            node.lineno = node.end_lineno = cut.line
            node.col_offset = node.end_col_offset = 0
    return mark


class _Cutter:
    """Cuts a tree; blocks and cuts have the same places."""

    def __init__(self, tree: ast.Module) -> None:
        self.cuts: list[_Cut] = []
        self._found: list[tuple[str, int, str, bool]] = []
        self._said: list[list[str]] = []
        self._body(tree.body, MODULE, "", line=1, is_first=True)

    @property
    def blocks(self) -> list[Block]:
        """The blocks in the order of their numbers."""
        return [
            Block(name, line, _digest(said), way, is_first)
            for (name, line, way, is_first), said in zip(self._found, self._said, strict=True)
        ]

    def _body(
        self, body: list[ast.stmt], name: str, way: str, *, line: int = 0, is_first: bool = False
    ) -> None:
        """Cut a list of statements where a branch before may have left it."""
        start = 1 if is_first and _is_docstring(body[0] if body else None) else 0
        said = self._open(body, start, name, way, line=line, is_first=is_first)
        for at, statement in enumerate(body[start:], start=start):
            text = self._statement(statement, name, way)
            said.append(text)
            if _may_leave(statement) and at + 1 < len(body):
                way = _digest((way, "after", text))
                said = self._open(body, at + 1, name, way)

    def _open(
        self,
        body: list[ast.stmt],
        at: int,
        name: str,
        way: str,
        *,
        line: int = 0,
        is_first: bool = False,
    ) -> list[str]:
        here = body[at].lineno if at < len(body) else line
        self.cuts.append(_Cut(body, at, here))
        self._found.append((name, line or here, way, is_first))
        self._said.append([])
        return self._said[-1]

    def _statement(self, node: ast.stmt, name: str, way: str) -> str:
        """What a statement says in its own block; what it branches to is cut apart."""
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                return self._function(node, name)
            case ast.ClassDef():
                return self._class(node, name)
            case ast.Match():
                return self._match(node, name, way)
            case _:
                pass
        lists = _lists(node)
        if not lists:
            return ast.dump(node)
        head = _head(node)
        for branch, body in lists:
            if body and not (branch == "body" and _never_runs(node)):
                self._body(body, name, _digest((way, branch, head)))
        for handler in getattr(node, "handlers", ()):
            caught = ast.dump(handler.type) if handler.type is not None else ""
            self._body(handler.body, name, _digest((way, "except", caught)))
        return head

    def _match(self, node: ast.Match, name: str, way: str) -> str:
        subject = ast.dump(node.subject)
        cases: list[str] = []
        for case in node.cases:
            guard = ast.dump(case.guard) if case.guard is not None else ""
            # A case is tried after those above it.
            cases.append(f"{ast.dump(case.pattern)} {guard}")
            self._body(case.body, name, _digest((way, subject, *cases)))
        return _digest((subject, *cases))

    def _function(self, node: _Function, outer: str) -> str:
        name = _inside(outer, node.name)
        head = ast.dump(_without_body(node))
        self._body(node.body, name, head, line=node.lineno, is_first=True)
        return f"{type(node).__name__} {node.name}"

    def _class(self, node: ast.ClassDef, outer: str) -> str:
        """A class body runs where it stands; only its functions are blocks of their own."""
        name = _inside(outer, node.name)
        said = [ast.dump(_without_body(node))]
        said += [self._member(statement, f"{name}.") for statement in node.body]
        return _digest(said)

    def _member(self, node: ast.stmt, name: str) -> str:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                return self._function(node, name)
            case ast.ClassDef():
                return self._class(node, name)
            case ast.Expr() if _is_docstring(node):
                return ""
            case _:
                pass
        for _, body in _lists(node):
            for statement in body:
                if isinstance(statement, _SCOPES):
                    self._member(statement, name)
        return ast.dump(node)


def _lists(node: ast.stmt) -> list[tuple[str, list[ast.stmt]]]:
    """The lists of statements that a compound statement holds, handlers apart, by their part."""
    parts = ("body", "orelse", "finalbody")
    return [(part, getattr(node, part)) for part in parts if hasattr(node, part)]


def _head(node: ast.stmt) -> str:
    """What a compound statement itself evaluates."""
    shown = [
        ast.dump(part)
        for field in ("test", "target", "iter", "items")
        for part in _listed(getattr(node, field, None))
    ]
    return f"{type(node).__name__} {' '.join(shown)}"


def _listed(part: object) -> Sequence[ast.AST]:
    if isinstance(part, ast.AST):
        return [part]
    return part if isinstance(part, list) else []


def _without_body(node: _Function | ast.ClassDef) -> ast.AST:
    parts = {field: value for field, value in ast.iter_fields(node) if field != "body"}
    return type(node)(**parts, body=[])


def _inside(outer: str, name: str) -> str:
    """A qualified name as Python makes it; an outer name that ends in a dot is a class's."""
    if outer == MODULE:
        return name
    return f"{outer}{name}" if outer.endswith(".") else f"{outer}.<locals>.{name}"


def _is_docstring(node: ast.stmt | None) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def _never_runs(node: ast.stmt) -> bool:
    """Whether this is for type checkers, or for a module that is started by hand."""
    if not isinstance(node, ast.If):
        return False
    test = ast.unparse(node.test)
    return test in {"TYPE_CHECKING", "typing.TYPE_CHECKING"} or test == "__name__ == '__main__'"


def _may_leave(node: ast.stmt) -> bool:
    """Whether what follows a compound statement may be skipped by it."""
    if not (_lists(node) or isinstance(node, ast.Match)) or isinstance(node, _SCOPES):
        return False
    waiting: list[ast.AST] = [node]
    while waiting:
        one = waiting.pop()
        if isinstance(one, _EXITS):
            return True
        waiting += [child for child in ast.iter_child_nodes(one) if not isinstance(child, _SCOPES)]
    return False


def _digest(parts: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(parts).encode("utf-8", "backslashreplace")).hexdigest()[:24]
