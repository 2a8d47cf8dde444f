"""The opcodes of pickle that spell plain data, and a machine that follows them.

Classes are names here (`Thing`), and making something of one is up to whoever owns the machine.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

MAX_STACK: Final = 1 << 18


@dataclass(slots=True, kw_only=True, eq=False)
class Thing:
    """A class by its name, or with `fields` an object of it."""

    module: str
    name: str
    fields: dict[Any, Any] | None = None


class _Mark:
    """Where on the stack a collection begins."""


_MARK: Final = _Mark()


@dataclass(slots=True, kw_only=True)
class Machine:
    """A stack, a memo, and nothing that could do harm.

    Its methods raise `ValueError`, `TypeError` or `LookupError` for a pickle that makes no sense.
    """

    resolve: Callable[[str, str], Thing]
    make: Callable[[Thing, tuple[Any, ...]], Any]
    stack: list[Any] = field(default_factory=list)
    memo: dict[int, Any] = field(default_factory=dict)

    def push(self, value: Any) -> None:  # noqa: ANN401 - a pickle holds anything
        """Put a value on the stack."""
        if len(self.stack) >= MAX_STACK:
            raise ValueError("its stack grows too high")
        self.stack.append(value)

    def pop(self) -> Any:  # noqa: ANN401 - a pickle holds anything
        """Take the last value off the stack."""
        value = self.stack.pop()
        if value is _MARK:
            raise ValueError("a value is missing")
        return value

    def popped(self) -> list[Any]:
        """Take what stands after the last mark, and the mark."""
        for place in range(len(self.stack) - 1, -1, -1):
            if self.stack[place] is _MARK:
                found = self.stack[place + 1 :]
                del self.stack[place:]
                return found
        raise ValueError("a mark is missing")

    def result(self) -> Any:  # noqa: ANN401 - a pickle holds anything
        """The one value that is left."""
        value = self.pop()
        if self.stack:
            raise ValueError("values are left over")
        return value


_Step: TypeAlias = Callable[[Machine, Any], None]


def _given(machine: Machine, argument: Any) -> None:  # noqa: ANN401 - a pickle holds anything
    machine.push(argument)


def _constant(value: Any) -> _Step:  # noqa: ANN401 - a pickle holds anything
    return lambda machine, _: machine.push(value)


def _fresh(kind: Callable[[], Any]) -> _Step:
    return lambda machine, _: machine.push(kind())


def _tuple(size: int) -> _Step:
    def step(machine: Machine, _: object) -> None:
        items = [machine.pop() for _ in range(size)]
        machine.push(tuple(reversed(items)))

    return step


def _gathered(kind: Callable[[list[Any]], Any]) -> _Step:
    return lambda machine, _: machine.push(kind(machine.popped()))


def _pairs(items: list[Any]) -> dict[Any, Any]:
    if len(items) % 2:
        raise ValueError("a name in it has no value")
    return dict(zip(items[::2], items[1::2], strict=True))


def _appended(machine: Machine, items: list[Any]) -> None:
    # Sets are told as lists: what is in one need not hash here.
    target = machine.stack[-1]
    if not isinstance(target, list):
        raise TypeError("it appends to what is no list")
    target.extend(items)


def _set(machine: Machine, items: list[Any]) -> None:
    target = machine.stack[-1]
    if not isinstance(target, dict):
        raise TypeError("it sets members of what is no mapping")
    target.update(_pairs(items))


def _set_item(machine: Machine, _: object) -> None:
    value, name = machine.pop(), machine.pop()
    _set(machine, [name, value])


def _remember(machine: Machine, argument: int | None) -> None:
    place = len(machine.memo) if argument is None else argument
    value = machine.stack[-1]
    if value is _MARK:
        raise ValueError("it remembers a mark")
    machine.memo[place] = value


def _recall(machine: Machine, argument: int) -> None:
    machine.push(machine.memo[argument])


def _global(machine: Machine, argument: str) -> None:
    module, _, name = argument.partition(" ")
    machine.push(machine.resolve(module, name))


def _stack_global(machine: Machine, _: object) -> None:
    name, module = machine.pop(), machine.pop()
    if not isinstance(name, str) or not isinstance(module, str):
        raise TypeError("the name of a class is no text")
    machine.push(machine.resolve(module, name))


def _made(machine: Machine, _: object) -> None:
    arguments, thing = machine.pop(), machine.pop()
    if not isinstance(thing, Thing) or thing.fields is not None:
        raise TypeError("it calls what is no class")
    if not isinstance(arguments, tuple):
        raise TypeError("arguments are no tuple")
    machine.push(machine.make(thing, arguments))


def _built(machine: Machine, _: object) -> None:
    """Give an object its fields; pydantic keeps them under ``__dict__``."""
    state, thing = machine.pop(), machine.stack[-1]
    if not isinstance(thing, Thing) or thing.fields is None or not isinstance(state, dict):
        raise TypeError("it gives fields to what has none")
    fields = state.get("__dict__", state)
    if not isinstance(fields, dict):
        raise TypeError("its fields are no mapping")
    thing.fields = fields


def _nothing(machine: Machine, _: object) -> None:
    """What frames the data says nothing of it."""


OPCODES: Final[dict[str, _Step]] = {
    **dict.fromkeys(("PROTO", "FRAME"), _nothing),
    **dict.fromkeys(
        (
            *("INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4", "FLOAT"),
            *("BINFLOAT", "UNICODE", "SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8"),
            *("SHORT_BINBYTES", "BINBYTES", "BINBYTES8", "BYTEARRAY8"),
        ),
        _given,
    ),
    "NONE": _constant(None),
    "NEWTRUE": _constant(True),  # noqa: FBT003 - the value that the opcode means
    "NEWFALSE": _constant(False),  # noqa: FBT003 - the value that the opcode means
    "MARK": _constant(_MARK),
    "EMPTY_DICT": _fresh(dict),
    "EMPTY_LIST": _fresh(list),
    "EMPTY_SET": _fresh(list),
    "EMPTY_TUPLE": _constant(()),
    "TUPLE1": _tuple(1),
    "TUPLE2": _tuple(2),
    "TUPLE3": _tuple(3),
    "TUPLE": _gathered(tuple),
    "LIST": _gathered(list),
    "FROZENSET": _gathered(list),
    "DICT": _gathered(_pairs),
    "APPEND": lambda machine, _: _appended(machine, [machine.pop()]),
    "APPENDS": lambda machine, _: _appended(machine, machine.popped()),
    "ADDITEMS": lambda machine, _: _appended(machine, machine.popped()),
    "SETITEM": _set_item,
    "SETITEMS": lambda machine, _: _set(machine, machine.popped()),
    **dict.fromkeys(("MEMOIZE", "PUT", "BINPUT", "LONG_BINPUT"), _remember),
    **dict.fromkeys(("GET", "BINGET", "LONG_BINGET"), _recall),
    "GLOBAL": _global,
    "STACK_GLOBAL": _stack_global,
    "NEWOBJ": _made,
    "REDUCE": _made,
    "BUILD": _built,
}
"""What to do for each opcode that plain data needs. Pickle has others; none of them is known."""
