"""What a replay cannot exercise, by comparing what two versions are made of (D7)."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from backstop.adk.blocks import MODULE, Block
from backstop.core.canon import digest
from backstop.core.unshown import Sort, Unshown, rest
from backstop.replay.code import Exercised
from backstop.replay.wire import Ready

_LISTED: Final = 25
_LINES_SHOWN: Final = 5


def uncovered(
    candidate: Ready, *, base: Ready | None, recorded: Mapping[str, str]
) -> tuple[Unshown, ...]:
    """What the verdict on a candidate does not cover, whatever its runs reach.

    Without a `base`, `recorded` says which code the tools had when the ledger was written.
    """
    before = recorded if base is None else code_of(base)
    shared = () if base is None else _beside(base.beside, candidate.beside)
    return (*_changed(before, code_of(candidate)), *shared)


def code_of(ready: Ready) -> dict[str, str]:
    """Digests of the tools' own code, by tool; of all its codes where agents share a name."""
    codes: dict[str, set[str]] = defaultdict(set)
    for tool in ready.tools:
        if tool.code:
            codes[tool.tool].add(tool.code)
    return {
        name: min(of) if len(of) == 1 else digest("\n".join(sorted(of)))
        for name, of in codes.items()
    }


def _changed(before: Mapping[str, str], after: Mapping[str, str]) -> list[Unshown]:
    return [
        Unshown(
            sort=Sort.BODY,
            subject=tool,
            told=f"what {tool} does inside changed; no replay runs it",
            before=before[tool],
            after=after[tool],
        )
        for tool in sorted(before.keys() & after.keys())
        if before[tool] != after[tool]
    ]


def _beside(before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[Unshown]:
    """Modules outside of the agent's folder: nobody marks what a run reaches of them."""
    for file in sorted(before.keys() | after.keys()):
        if before.get(file) != after.get(file):
            what = "is new" if file not in before else "changed" if file in after else "is gone"
            told = f"{file} {what}, and outside of the agent's folder no run tells what it reached"
            yield _held(Sort.BESIDE, file, told, before, after)


def _held(
    sort: Sort, name: str, told: str, before: Mapping[str, str], after: Mapping[str, str]
) -> Unshown:
    """A change of what both versions hold by `name`, as digests."""
    return Unshown(
        sort=sort,
        subject=name,
        told=told,
        before=before.get(name, ""),
        after=after.get(name, ""),
    )


def unreached(base: Exercised, candidate: Exercised) -> tuple[Unshown, ...]:
    """D7: what differs between two versions and no run of either reached, a place a line.

    What only the base has counts as well: it was removed, and no run tells what that does.
    """
    found = [*_agents(base, candidate), *_code(base, candidate), *_data(base, candidate)]
    if len(found) > _LISTED:
        found[_LISTED:] = [rest(found[_LISTED:])]
    return tuple(found)


def _agents(base: Exercised, candidate: Exercised) -> Iterator[Unshown]:
    """An agent that a run asked is judged by its requests' digests; others by nothing."""
    before, after = base.setups, candidate.setups
    for name in sorted(before.keys() | after.keys()):
        if before.get(name) == after.get(name):
            continue
        if name not in after:
            if name not in base.reached.agents:
                told = f"agent {name} was removed and no run had asked it"
                yield _held(Sort.AGENT, name, told, before, after)
        elif name not in candidate.reached.agents:
            what = "changed" if name in before else "is new"
            told = f"agent {name} {what} and no run asked it"
            yield _held(Sort.AGENT, name, told, before, after)


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


def _code(base: Exercised, candidate: Exercised) -> Iterator[Unshown]:
    before, after = _functions(base), _functions(candidate)
    everywhere = {name for functions in after.values() for name in functions}
    for file, functions in after.items():
        known = before.get(file, {})
        for name, placed in functions.items():
            earlier = known.get(name, [])
            if (told := _function(file, name, earlier, placed, base, candidate)) is not None:
                yield _written(file, name, told, earlier, placed)
    for file, functions in before.items():
        for name, placed in functions.items():
            # Moved to another file, it is listed there if no run reached it.
            gone = file not in after if name == MODULE else name not in everywhere
            if gone and not base.has_reached(file, placed[0].number):
                what = "is a tool's body now" if candidate.is_body(file, name) else "was removed"
                told = f"{_shown(file, name, [placed[0]])} {what} and no run had reached it"
                yield _written(file, name, told, placed, [])


def _written(
    file: str, name: str, told: str, before: Sequence[_Placed], after: Sequence[_Placed]
) -> Unshown:
    """A change of a function, named by all that it says: its place in the file is no part of it."""
    return Unshown(
        sort=Sort.CODE,
        subject=f"{file}:{name}",
        told=told,
        before=_says(before),
        after=_says(after),
    )


def _says(placed: Sequence[_Placed]) -> str:
    return (
        digest("\n".join(f"{one.block.says} {one.block.way}" for one in placed)) if placed else ""
    )


def _function(
    file: str,
    name: str,
    before: list[_Placed],
    after: list[_Placed],
    base: Exercised,
    candidate: Exercised,
) -> str | None:
    """What is to be said of one function; None where runs reached all that differs."""
    changed = _only_in(after, before)
    missed = [one for one in changed if not candidate.has_reached(file, one.number)]
    if any(one.block.is_first for one in missed):
        was_tool = base.is_body(file, name)
        what = "changed" if before else "is no tool any more" if was_tool else "is new"
        return f"{_shown(file, name, missed[:1])} {what} and no run reached it"
    if missed:
        return f"{_shown(file, name, missed)}: a branch changed and no run reached it"
    if any(not base.has_reached(file, one.number) for one in _said_only_in(before, after)):
        return f"{_shown(file, name, after[:1])} lost a branch that no run had reached"
    return None


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


def _data(base: Exercised, candidate: Exercised) -> Iterator[Unshown]:
    """Files that are no code: what reads them is known only where a run read them."""
    before, after = base.code.data, candidate.code.data
    for file in sorted(before.keys() | after.keys()):
        if before.get(file) == after.get(file):
            continue
        if file not in after:
            if file not in base.reached.files:
                told = f"{file} was removed and no run had read it"
                yield _held(Sort.DATA, file, told, before, after)
        elif file not in candidate.reached.files:
            what = "changed" if file in before else "is new"
            yield _held(Sort.DATA, file, f"{file} {what} and no run read it", before, after)
    odd, still = base.code.unread, candidate.code.unread
    for file in sorted(still):
        if odd.get(file) != still[file]:
            told = f"{file} changed, and this Python cannot read it: nobody knows what runs reached"
            yield _held(Sort.CODE, file, told, odd, still)
