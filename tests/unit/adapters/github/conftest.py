"""A GitHub on loopback for every test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from backstop.adapters.github.client import GitHub
from tests.github.fake import FakeGitHub, fake_github
from tests.github.talking import Watch, pacing_by, talking_to


@pytest.fixture
def fake() -> Iterator[FakeGitHub]:
    with fake_github() as served:
        yield served


@pytest.fixture
def watch() -> Watch:
    return Watch()


@pytest.fixture
def github(fake: FakeGitHub, watch: Watch) -> Iterator[GitHub]:
    with talking_to(fake, pacing=pacing_by(watch)) as client:
        yield client
