"""What a live model may cost, and what it has cost: calls and tokens, counted once.

A call is reserved before it is made, since afterwards it is too late, and settled by what the
model says that it took.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import msgspec

ANSWER_TOKENS: Final = 8_192
"""Tokens reserved for an answer whose request sets no limit of its own."""

BYTES_A_TOKEN: Final = 4
"""Bytes of a request that are taken for one token before the model has counted them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What is allowed: calls and tokens (in and out together) for one verdict on one agent.

    Each run is replayed `repeats` times, and what at least `agreement` of them show counts.
    `models` are the names that may be asked; empty leaves it to what the base's agents ask.
    """

    calls: int = 100
    tokens: int = 500_000
    repeats: int = 1
    agreement: int = 1
    models: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Spend:
    """Calls that were answered or failed for good, and the tokens that they took."""

    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0

    @property
    def tokens(self) -> int:
        """Tokens in and out."""
        return self.tokens_in + self.tokens_out

    def __add__(self, other: Spend) -> Spend:
        return Spend(
            calls=self.calls + other.calls,
            tokens_in=self.tokens_in + other.tokens_in,
            tokens_out=self.tokens_out + other.tokens_out,
        )


class LiveUse(msgspec.Struct, frozen=True, kw_only=True):
    """How a live model took part in a replay, and what its answers have cost.

    `answers` is the digest of the answers that were used: the same where they came from a
    cassette. `models` are the names that were asked for, `unusual` those of them that the
    base's agents do not ask. `runs` counts the runs that an answer of it took part in.
    """

    repeats: int
    agreement: int
    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    models: tuple[str, ...] = ()
    unusual: tuple[str, ...] = ()
    runs: int = 0
    answers: str = ""


@dataclass(slots=True, kw_only=True)
class Budget:
    """Keeps count of what is spent and of what calls under way may still take."""

    limits: Limits
    spent: Spend = field(default_factory=Spend)
    _reserved: Spend = field(default_factory=Spend)

    def reserve(self, *, size: int, answer: int | None) -> Spend | str:
        """Room for a request of `size` bytes and `answer` tokens in return; or why there is none.

        Give what is returned to `settle`.
        """
        limits, taken = self.limits, self.spent + self._reserved
        wanted = Spend(
            calls=1,
            tokens_in=size // BYTES_A_TOKEN,
            tokens_out=ANSWER_TOKENS if answer is None else answer,
        )
        if taken.calls + 1 > limits.calls:
            return f"the budget of {limits.calls:,} model calls is used up"
        if taken.tokens + wanted.tokens > limits.tokens:
            return (
                f"a call of up to {wanted.tokens:,} tokens may exceed the budget of "
                f"{limits.tokens:,}"
            )
        self._reserved += wanted
        return wanted

    def settle(self, reserved: Spend, taken: Spend) -> str | None:
        """What a reserved call has taken; why its answer must not count, if it took too much."""
        left = self._reserved
        self._reserved = Spend(
            calls=left.calls - reserved.calls,
            tokens_in=left.tokens_in - reserved.tokens_in,
            tokens_out=left.tokens_out - reserved.tokens_out,
        )
        self.spent += taken
        if self.spent.tokens > self.limits.tokens:
            return f"this answer exceeds the budget of {self.limits.tokens:,} tokens"
        return None
