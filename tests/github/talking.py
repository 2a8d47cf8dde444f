"""A client that speaks to a fake GitHub without waiting: its time is a figure."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from backstop.adapters.github.client import GitHub
from backstop.adapters.github.event import Event, Kind
from backstop.adapters.github.retrying import Pacing
from tests.github.fake import TOKEN, FakeGitHub

EVENT = Event(
    kind=Kind.PULL_REQUEST,
    repo="octo/repo",
    number=7,
    base_ref="main",
    base_sha="b" * 40,
    head_ref="feature",
    head_sha="a" * 40,
    head_repo="octo/repo",
    fork=False,
    merged_sha="c" * 40,
    default_branch="main",
    run=1,
    attempt=1,
    run_url="",
    server_url="",
    api_url="",
    graphql_url="",
)
"""A pull request."""


@dataclass(slots=True)
class Watch:
    """Time that passes only while somebody sleeps; `naps` are those sleeps."""

    at: float = 0.0
    naps: list[float] = field(default_factory=list)

    def monotonic(self) -> float:
        return self.at

    def sleep(self, seconds: float) -> None:
        self.naps.append(seconds)
        self.at += seconds


def pacing_by(watch: Watch, *, total_s: float = 120.0, chance: float = 0.0) -> Pacing:
    """Pacing by a watch that does not go by itself."""
    return Pacing(
        total_s=total_s, sleep=watch.sleep, monotonic=watch.monotonic, chance=lambda: chance
    )


@contextmanager
def talking_to(
    fake: FakeGitHub,
    *,
    token: str | None = TOKEN,
    pacing: Pacing | None = None,
    api: str | None = None,
) -> Iterator[GitHub]:
    """A client of `fake`, by default with the token of a job."""
    with GitHub(
        api=api or fake.url,
        graphql=f"{fake.url}/graphql",
        token=token,
        pacing=pacing or pacing_by(Watch()),
    ) as github:
        yield github
