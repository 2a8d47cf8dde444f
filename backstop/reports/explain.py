"""One sentence for each divergence: what this version would do, and why it matters.

Deterministic: the words follow from kind, reason and the two calls, and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from backstop.core.canon import Json, canonical
from backstop.core.divergence import Divergence, Reason
from backstop.core.fields import normalise

ABSENT: Final = "(absent)"
_MAX_NAMES: Final = 3

_SENTENCES: Final[Mapping[Reason, str]] = {
    Reason.RELABELLED: (
        "It would call {tool} again for work that is done, written another way at {names} "
        "({difference}): the key is new, so the guard would not stop it."
    ),
    Reason.RETARGETED: (
        "It would call {tool} for another target in place of the one recorded, by {names}: the "
        "key is new, so the guard would not stop it."
    ),
    Reason.IDENTITY_UNKNOWN: (
        "It would call {tool} again with other arguments; the tool declares no identity, so "
        "every argument names its target. Declare which ones do: {names} would decide."
    ),
    Reason.REPEATED: (
        "It would call {tool} once more than it went out, and no guard stands there to stop "
        "the repeat."
    ),
    Reason.REKEYED: (
        "It would call {tool} again: the key rules changed, the recorded call got another "
        "key, and the guard would not find it."
    ),
    Reason.RENAMED: (
        "It would do with {tool} what {recorded_tool} has already done: the tool's name is "
        "part of the key, so the guard would not stop it."
    ),
    Reason.MOVED: (
        "It would call {tool} again in another step; the step is part of the key, so the "
        "guard would not stop it."
    ),
    Reason.CHANGED: (
        "It would call {tool} for the same target with another value than went out, at {names}."
    ),
    Reason.CONFLICT: (
        "It would call {tool} again with another value ({names}); the guard would refuse it "
        "as a conflict, so it would never go out."
    ),
    Reason.MOVED_EARLIER: (
        "It would call {tool} in an earlier step than it went out, before what it waited for "
        "had happened."
    ),
    Reason.DROPPED: "It would not call {tool}, which went out: the work would be left undone.",
    Reason.NEW: "It would call {tool}, which never went out.",
    Reason.SWALLOWED: (
        "It would call {tool} again in a later step; the guard would take it for the call "
        "that went out, so it would never go out."
    ),
    Reason.DELIBERATE: (
        "It would call {tool} once more on purpose: the call carries its override, so the "
        "guard would let it pass."
    ),
}


_REMEDIES: Final[Mapping[Reason, str]] = {
    Reason.RELABELLED: "the recorded spelling at {names}",
    Reason.RETARGETED: "the recorded target at {names}",
    Reason.IDENTITY_UNKNOWN: "{tool}: declare its identity",
    Reason.REPEATED: "the guard on {tool}, or one call less",
    Reason.REKEYED: "the guard on {tool}, or the former key rule",
    Reason.RENAMED: "{tool}: declare the alias {recorded_tool}",
    Reason.MOVED: "the recorded step, or an occurrence that names it",
    Reason.CHANGED: "the recorded value at {names}, or declare it volatile",
    Reason.CONFLICT: "{tool}: declare what tells repeats apart (occurrence)",
    Reason.MOVED_EARLIER: "waiting for what the recorded step waited for",
    Reason.DROPPED: "asking for {tool} as before",
    Reason.NEW: "asking for it in future runs only",
    Reason.SWALLOWED: "{tool}: declare what tells repeats apart (occurrence)",
    Reason.DELIBERATE: "nothing, if the recorded reason holds",
}


def as_it_is(text: str) -> str:
    """`text` itself: a spelling for where escaping comes later."""
    return text


def sentence(divergence: Divergence, spell: Callable[[str], str] = as_it_is) -> str:
    """What the version would do, in one sentence. `spell` escapes what comes from an agent."""
    return _told(_SENTENCES[divergence.reason], divergence, spell)


def remedy(divergence: Divergence, spell: Callable[[str], str] = as_it_is) -> str:
    """What would remove it, in a few words: the rule to declare, where one is known."""
    if (kinds := _kinds(divergence)) is not None:
        return f"declare {spell(', '.join(kinds))}"
    return _told(_REMEDIES[divergence.reason], divergence, spell)


def _told(template: str, divergence: Divergence, spell: Callable[[str], str]) -> str:
    recorded = divergence.recorded
    return template.format(
        tool=spell(divergence.tool),
        recorded_tool=spell(divergence.tool if recorded is None else recorded.tool),
        names=_listed([spell(path) for path in divergence.paths[:_MAX_NAMES]], divergence.paths),
        difference=", ".join(divergence.difference) or "other",
    )


def _listed(shown: Sequence[str], paths: Sequence[str]) -> str:
    more = len(paths) - len(shown)
    named = ", ".join(shown) or "the identity"
    return f"{named} and {more} more" if more > 0 else named


def rule(divergence: Divergence) -> str | None:
    """The line of ``backstop.yaml`` that would remove a relabelled call, if there is one."""
    kinds = _kinds(divergence)
    return None if kinds is None else f"{divergence.tool}: {{fields: {{{', '.join(kinds)}}}}}"


def _kinds(divergence: Divergence) -> list[str] | None:
    """``argument: kind`` for each argument that differs and that the suggested kind makes equal."""
    recorded, intended = divergence.recorded, divergence.intended
    if divergence.suggestion is None or recorded is None or intended is None:
        return None
    kind = divergence.suggestion
    return [
        f"{name}: {kind}"
        for name in sorted(recorded.args.keys() & intended.args.keys())
        if canonical(recorded.args[name]) != canonical(intended.args[name])
        and canonical(normalise(recorded.args[name], (kind,)))
        == canonical(normalise(intended.args[name], (kind,)))
    ]


def at(args: Mapping[str, Json], pointer: str) -> str:
    """Canonical text of what stands at a JSON Pointer in `args`, `ABSENT` where nothing does."""
    value: Json = dict(args)
    for part in pointer.split("/")[1:]:
        name = part.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict) and name in value:
            value = value[name]
        elif isinstance(value, list) and name.isdecimal() and int(name) < len(value):
            value = value[int(name)]
        else:
            return ABSENT
    return canonical(value)


def count_of(number: int, noun: str) -> str:
    """``1 run``, ``2,000 runs``: a number with its noun, given in the singular."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def accepted_line(number: int) -> str:
    """``accepted: 2 changes that no replay shows``: what a pass does not rest on."""
    return f"accepted: {count_of(number, 'change')} that no replay shows"


def anchor(divergence: Divergence) -> str:
    """Where docs/divergences.md explains it: ``kind-reason``."""
    return f"{divergence.kind.value.lower()}-{divergence.reason.value.replace(' ', '-')}"
