"""What every contender has to do: the same call with the same arguments, kept from going out twice.

Standard library only: it runs in the environments of all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any, Final

RUN: Final = "run-42"
TOOL: Final = "create_purchase_order"

Order = dict[str, Any]


def order(ref: str) -> Order:
    """The arguments of one call; only the reference differs from call to call."""
    return {
        "vendor_id": "acme-corp",
        "po_ref": ref,
        "quantity": 12,
        "unit_price": "149.50",
        "note": "Deliver to dock 4, before noon",
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a contender works. `act` is the effect, `seen` looks whether it happened.

    `lease_s` is how long a claim may stand before others may look into it, where a contender
    knows such a time. `service` is the address of the server that it stores into, if any.
    """

    folder: Path
    act: Callable[[str], Order]
    seen: Callable[[str], bool]
    variant: str = ""
    service: str = ""
    lease_s: float = 900.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Guarded:
    """A contender at work. `call` is one guarded call, as an application makes it.

    It returns the tool's result; whatever else it knows to say, it raises. `many` does several
    at once where that is how the contender is meant to be used; it gives seconds a call.
    """

    call: Callable[[str], object]
    many: Callable[[Sequence[str]], list[float]] | None = None

    def timed(self, refs: Sequence[str]) -> list[float]:
        """Call once for each reference; seconds a call."""
        if self.many is not None:
            return self.many(refs)
        return self.again(refs)

    def again(self, refs: Sequence[str]) -> list[float]:
        """Call for each reference, one by one; seconds a call."""
        spent = []
        for ref in refs:
            start = perf_counter()
            self.call(ref)
            spent.append(perf_counter() - start)
        return spent


class Unfinished(RuntimeError):
    """The contender says in words that the effect is not known to be done."""


def tool(place: Place) -> Callable[..., Order]:
    """The tool as its author wrote it; a contender decorates it."""

    def create_purchase_order(
        vendor_id: str,  # noqa: ARG001 - a tool's parameters are its contract, used or not
        po_ref: str,
        quantity: int,  # noqa: ARG001
        unit_price: str,  # noqa: ARG001
        note: str,  # noqa: ARG001
    ) -> Order:
        return place.act(po_ref)

    return create_purchase_order
