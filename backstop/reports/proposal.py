"""What `backstop init` proposes, as text: the configuration, the workflow, and a table.

Names and reasons come from a repository that nobody has vouched for: a comment never ends
before its line does, and a name is quoted wherever it is more than a word.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from backstop.core.proposing import Proposal
from backstop.reports.escape import brief, plain

WIDTH: Final = 80
_TOOL: Final = 32
_LONGEST: Final = 200
_UNDER: Final = " " * 10
_COMMENT: Final = 100
_WORD: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*", re.ASCII)
_FALSE_WORDS: Final = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})
_PATH: Final = re.compile(r"[A-Za-z0-9_.][A-Za-z0-9_./-]*", re.ASCII)
_NUMBER: Final = re.compile(r"[-+.0-9_eExX]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposedTool:
    """A tool and what to declare of it. `says` is set where its own code declares it."""

    name: str
    proposal: Proposal
    says: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposedAgent:
    """An agent, its folder from the root, and its tools.

    `lack` is why it was not loaded, so that its tools are those seen in its code; empty where it
    was. `unlisted` are sets of tools that nobody could list, `notes` what else a person should
    know. `has_ledger` says that its ledger is there, or will be.
    """

    name: str
    folder: str
    tools: Sequence[ProposedTool] = ()
    lack: str = ""
    unlisted: Sequence[str] = ()
    notes: Sequence[str] = ()
    has_ledger: bool = False


def config_text(
    agents: Sequence[ProposedAgent], *, python: str | None, env: Mapping[str, str]
) -> str:
    """``backstop.yaml`` for these agents, each declaration with its reason."""
    lines = [
        "# What the agents' tools do to the world outside, and what names each thing they do.",
        "# Proposed by `backstop init` from names, schemas and code: read it, it is yours now.",
        "version: 1",
        "",
        "agents:",
    ]
    for agent in agents:
        lines += [*_agent_lines(agent), ""]
    if python or env:
        lines.append("sandbox:")
        lines += [f"  python: {_path(python)}"] if python else []
        if env:
            lines += ["  env:", *(f"    {name}: {in_quotes(env[name])}" for name in sorted(env))]
        lines.append("")
    return "\n".join(lines[:-1]) + "\n"


def _agent_lines(agent: ProposedAgent) -> Iterator[str]:
    if agent.lack:
        yield from _comment(f"Not loaded: {agent.lack}", indent=2)
        yield "  # Its tools were seen in code only: run `backstop init --diff` once it loads."
    for toolset in agent.unlisted:
        yield from _comment(
            f"Cannot be listed offline, effects until declared: {toolset}", indent=2
        )
    yield f"  {quoted(agent.name)}:"
    yield f"    path: {_path(agent.folder)}"
    ledger = f"ledger: {_path(ledger_of(agent.name))}"
    yield f"    {ledger}" if agent.has_ledger else f"    # {ledger} # once it is there"
    if agent.tools:
        yield "    tools:"
    for tool in agent.tools:
        yield from _tool_lines(tool)


def ledger_of(name: str) -> str:
    """Where an agent's ledger belongs, from the configuration's folder."""
    return f"ledgers/{name}.jsonl"


def _tool_lines(tool: ProposedTool) -> Iterator[str]:
    proposal = tool.proposal
    yield from _comment(f"{'effect' if proposal.effect else 'read'}: {proposal.why}", indent=6)
    if proposal.why_identity:
        word = "key" if proposal.key else "identity"
        yield from _comment(f"{word}: {proposal.why_identity}", indent=6)
    for hint in proposal.hints:
        yield from _comment(f"hint: {hint}", indent=6)
    if not proposal.effect:
        said = "effect: false"
    elif proposal.key:
        said = f"key: [{', '.join(map(quoted, proposal.key))}]"
    elif proposal.identity:
        said = f"identity: [{', '.join(map(quoted, proposal.identity))}]"
    else:
        said = "scope: run" if proposal.may_be_bare else "effect: true"
    yield f"      {quoted(tool.name)}: {{{said}}}"


def _comment(text: str, *, indent: int) -> Iterator[str]:
    """A comment of as many lines as it takes; no text can end it early."""
    lead = f"{' ' * indent}# "
    shown = brief(text, 4 * _COMMENT)
    yield from textwrap.wrap(
        shown, _COMMENT, initial_indent=lead, subsequent_indent=f"{lead}  ", break_on_hyphens=False
    )


def quoted(text: str) -> str:
    """`text` as a YAML scalar that is read back as this very text."""
    if _WORD.fullmatch(text) and text.lower() not in _FALSE_WORDS:
        return text
    return in_quotes(text)


def _path(text: str) -> str:
    if _PATH.fullmatch(text) and not _NUMBER.fullmatch(text) and text.lower() not in _FALSE_WORDS:
        return text
    return in_quotes(text)


def in_quotes(text: str) -> str:
    """`text` in double quotes, whatever cannot be seen spelled out."""
    shown: list[str] = []
    for character in text:
        if character in '"\\':
            shown.append(f"\\{character}")
        elif character.isprintable() and (character.isascii() or character.isalnum()):
            shown.append(character)
        else:
            shown.append(f"\\U{ord(character):08x}")
    return f'"{"".join(shown)}"'


WORKFLOW: Final = """\
name: Backstop
on: [pull_request, merge_group]
permissions: {}
jobs:
  gate:
    runs-on: ubuntu-latest
    timeout-minutes: 30
    permissions: {contents: read, pull-requests: write} # the base; the comment
    steps:
      - uses: actions/checkout@v6
        with: {persist-credentials: false}
      - uses: org/backstop@v1
"""
"""The workflow that gates pull requests."""


def table(agents: Sequence[ProposedAgent]) -> Iterator[str]:
    """Agents and their tools for a terminal, in `WIDTH` columns."""
    for agent in agents:
        yield from wrapped(f"{plain(agent.name)}: {plain(agent.folder)}")
        if agent.lack:
            yield from wrapped(f"not loaded: {plain(agent.lack)}", lead="  ! ")
        for toolset in agent.unlisted:
            text = f"cannot be listed offline: {plain(toolset)}"
            yield from wrapped(text, lead="  ! ")
        for note in agent.notes:
            yield from wrapped(plain(note), lead="  ! ")
        if not agent.tools:
            yield "  no tools were found"
            continue
        yield f"  {'':<6}  {'seen in code only' if agent.lack else 'tool':<{_TOOL}}  identity"
        for tool in agent.tools:
            yield from _told(tool)


def _told(tool: ProposedTool) -> Iterator[str]:
    """A tool in one line, or more if its name or its identity are long, and the reason below."""
    proposal = tool.proposal
    named = proposal.identity or proposal.key
    identity = ", ".join(named) or ("all arguments" if proposal.effect else "")
    word = "effect" if proposal.effect else "read"
    shown = brief(tool.name, _LONGEST)
    yield from wrapped(
        f"{word:<6}  {shown:<{_TOOL}}  {brief(identity, _LONGEST)}".rstrip(), lead="  "
    )
    yield from wrapped(plain(proposal.why), lead=_UNDER)


def wrapped(text: str, *, lead: str = "") -> Iterator[str]:
    """`text`, which is safe to show, in lines of at most `WIDTH` columns."""
    yield from textwrap.wrap(
        text,
        WIDTH,
        initial_indent=lead,
        subsequent_indent=" " * (len(lead) or 2),
        break_on_hyphens=False,
    )
