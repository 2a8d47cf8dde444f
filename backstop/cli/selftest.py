"""``backstop selftest``: plants one divergence of each kind and looks whether it is found.

A gate whose comparer is broken, or was stubbed out, is green for ever; this is the check
that it still can be red.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Final, TypeAlias

import msgspec

from backstop.cli.faults import SelftestFailed
from backstop.core.canon import Json
from backstop.core.declaration import Declaration, Namespace
from backstop.core.divergence import Comparison, Kind, compare
from backstop.core.history import History, Outcome, Row
from backstop.core.identity import identify
from backstop.core.intents import Intent
from backstop.core.keying import Rules
from backstop.core.literal import literal

Comparer: TypeAlias = Callable[[History, list[Intent], Rules], Comparison]
Planted: TypeAlias = tuple[str, dict[str, Json]]

_NAMESPACE: Final = Namespace(agent="selftest")
_DECLARATIONS: Final = {
    tool: Declaration(tool=tool, identity=("id",))
    for tool in ("keep", "order", "pay", "remind", "mail")
}
WENT_OUT: Final[tuple[Planted, ...]] = (
    ("keep", {"id": "k-1"}),
    ("order", {"id": "acme-corp"}),
    ("pay", {"id": "p-1", "amount": 100}),
    ("remind", {"id": "r-1"}),
)
ASKED_FOR: Final[tuple[Planted, ...]] = (
    ("keep", {"id": "k-1"}),
    ("order", {"id": "ACME Corp"}),
    ("pay", {"id": "p-1", "amount": 120}),
    ("mail", {"id": "m-1"}),
)
EXPECTED: Final = {
    (Kind.DUPLICATE, "order"): 1,
    (Kind.MUTATED, "pay"): 1,
    (Kind.MISSING, "remind"): 1,
    (Kind.EXTRA, "mail"): 1,
}


def selftest(comparer: Comparer = compare) -> str:
    """What was found, in one line. Raises `SelftestFailed` if it is not what was planted."""
    rules = Rules(namespace=_NAMESPACE, declared=_DECLARATIONS, candidate=_DECLARATIONS)
    history = History(rows=[_row(*call) for call in WENT_OUT], runs=["r"])
    found = comparer(history, [_intent(*call) for call in ASKED_FOR], rules)
    kinds = Counter((divergence.kind, divergence.tool) for divergence in found.divergences)
    if kinds != EXPECTED or found.matched != 1:
        told = ", ".join(f"{count} {kind} of {tool}" for (kind, tool), count in kinds.items())
        raise SelftestFailed(
            "planted one DUPLICATE, MUTATED, MISSING, EXTRA and one match; the comparer found "
            f"{told or 'no divergence'} and {found.matched} matches: trust no verdict of this "
            "installation, reinstall Backstop"
        )
    return "selftest: 1 DUPLICATE, 1 MUTATED, 1 MISSING and 1 EXTRA planted, all found; 1 match"


def _row(tool: str, args: dict[str, Json]) -> Row:
    found = identify(args, _DECLARATIONS[tool], namespace=_NAMESPACE, run="r", step="s")
    return Row(
        index=0,
        run="r",
        step="s",
        cursor=0,
        tool=tool,
        key=found.key,
        fingerprint=found.fingerprint,
        args=msgspec.Raw(literal(args).encode()),
        outcome=Outcome.COMMITTED,
    )


def _intent(tool: str, args: dict[str, Json]) -> Intent:
    found = identify(args, _DECLARATIONS[tool], namespace=_NAMESPACE, run="r", step="s")
    return Intent(
        run="r",
        step="s",
        cursor=0,
        tool=tool,
        key=found.key,
        fingerprint=found.fingerprint,
        args=msgspec.Raw(literal(args).encode()),
    )
