"""What a replay cannot exercise, by comparing what two versions are made of (D7)."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from backstop.adk.blocks import MODULE, Block
from backstop.replay.code import Exercised
from backstop.replay.wire import Ready

_LISTED: Final = 25
_LINES_SHOWN: Final = 5


def uncovered(
    candidate: Ready, *, base: Ready | None, recorded: Mapping[str, str]
) -> tuple[str, ...]:
    """What the verdict on a candidate does not cover, whatever its runs reach.

    Without a `base`, `recorded` says which code the tools had when the ledger was written.
    """
    before = recorded if base is None else code_of(base)
    shared = () if base is None else _beside(base.beside, candidate.beside)
    return (*_changed(before, code_of(candidate)), *shared)


def code_of(ready: Ready) -> dict[str, str]:
    """Digests of the tools' own code, by tool."""
    return {tool.tool: tool.code for tool in ready.tools if tool.code}


def _changed(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    return [
        f"what {tool} does inside changed; no replay runs it"
        for tool in sorted(before.keys() & after.keys())
        if before[tool] != after[tool]
    ]


def _beside(before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[str]:
    """Modules outside of the agent's folder: nobody marks what a run reaches of them."""
    for file in sorted(before.keys() | after.keys()):
        if before.get(file) != after.get(file):
            what = "is new" if file not in before else "changed" if file in after else "is gone"
            yield f"{file} {what}, and outside of the agent's folder no run tells what it reached"


def unreached(base: Exercised, candidate: Exercised) -> tuple[str, ...]:
    """D7: what differs between two versions and no run of either reached, a place a line.

    What only the base has counts as well: it was removed, and no run tells what that does.
    """
    found = [*_agents(base, candidate), *_code(base, candidate), *_data(base, candidate)]
    if (more := len(found) - _LISTED) > 0:
        found[_LISTED:] = [f"{more} more places changed and no run reached them"]
    return tuple(found)


def _agents(base: Exercised, candidate: Exercised) -> Iterator[str]:
    """An agent that a run asked is judged by its requests' digests; others by nothing."""
    before, after = base.setups, candidate.setups
    for name in sorted(before.keys() | after.keys()):
        if before.get(name) == after.get(name):
            continue
        if name not in after:
            if name not in base.reached.agents:
                yield f"agent {name} was removed and no run had asked it"
        elif name not in candidate.reached.agents:
            yield f"agent {name} {'changed' if name in before else 'is new'} and no run asked it"


class _Placed(NamedTuple):
    """A block and its number in its file."""

    number: int
    block: Block


def _functions(version: Exercised) -> dict[str, dict[str, list[_Placed]]]:
    """The blocks of a version by file and function; bodies of tools are compared apart."""
    found: dict[str, dict[str, list[_Placed]]] = {}
    for file, blocks in sorted(version.code.modules.items()):
        functions: dict[str, list[_Placed]] = defaultdict(list)
        for number, block in enumerate(blocks):
            if not version.is_body(file, block.name):
                functions[block.name].append(_Placed(number, block))
        found[file] = functions
    return found


def _code(base: Exercised, candidate: Exercised) -> Iterator[str]:
    before, after = _functions(base), _functions(candidate)
    everywhere = {name for functions in after.values() for name in functions}
    for file, functions in after.items():
        known = before.get(file, {})
        for name, placed in functions.items():
            yield from _function(file, name, known.get(name, []), placed, base, candidate)
    for file, functions in before.items():
        for name, placed in functions.items():
            # Moved to another file, it is listed there if no run reached it.
            gone = file not in after if name == MODULE else name not in everywhere
            if gone and not base.has_reached(file, placed[0].number):
                yield f"{_shown(file, name, [placed[0]])} was removed and no run had reached it"


def _function(
    file: str,
    name: str,
    before: list[_Placed],
    after: list[_Placed],
    base: Exercised,
    candidate: Exercised,
) -> Iterator[str]:
    """What is to be said of one function: at most one line."""
    changed = _only_in(after, before)
    missed = [one for one in changed if not candidate.has_reached(file, one.number)]
    if any(one.block.is_first for one in missed):
        what = "changed" if before else "is new"
        yield f"{_shown(file, name, missed[:1])} {what} and no run reached it"
    elif missed:
        yield f"{_shown(file, name, missed)}: a branch changed and no run reached it"
    elif any(not base.has_reached(file, one.number) for one in _said_only_in(before, after)):
        yield f"{_shown(file, name, after[:1])} lost a branch that no run had reached"


def _only_in(these: list[_Placed], those: list[_Placed]) -> list[_Placed]:
    """Those of `these` whose text and whose way there `those` do not have, as multisets."""
    known = Counter((one.block.says, one.block.way) for one in those)
    found: list[_Placed] = []
    for one in these:
        seen = (one.block.says, one.block.way)
        if known[seen]:
            known[seen] -= 1
        else:
            found.append(one)
    return found


def _said_only_in(these: list[_Placed], those: list[_Placed]) -> list[_Placed]:
    """Those of `these` whose text `those` do not have, wherever it stands."""
    known = {one.block.says for one in those}
    return [one for one in these if one.block.says not in known]


def _shown(file: str, name: str, placed: list[_Placed]) -> str:
    lines = ", ".join(str(one.block.line) for one in placed[:_LINES_SHOWN])
    more = ", ..." if len(placed) > _LINES_SHOWN else ""
    return f"{file}:{lines}{more} {'the module' if name == MODULE else name}"


def _data(base: Exercised, candidate: Exercised) -> Iterator[str]:
    """Files that are no code: what reads them is known only where a run read them."""
    before, after = base.code.data, candidate.code.data
    for file in sorted(before.keys() | after.keys()):
        if before.get(file) == after.get(file):
            continue
        if file not in after:
            if file not in base.reached.files:
                yield f"{file} was removed and no run had read it"
        elif file not in candidate.reached.files:
            yield f"{file} {'changed' if file in before else 'is new'} and no run read it"
    for file, digest in sorted(candidate.code.unread.items()):
        if base.code.unread.get(file) != digest:
            yield f"{file} changed, and this Python cannot read it: nobody knows what runs reached"
