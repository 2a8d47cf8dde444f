"""A second push that changes nothing: no replay, the same verdict, judged anew."""

from __future__ import annotations

from pathlib import Path

import pytest

from backstop.core.verdict import Decision
from backstop.reports.document import digest_of
from tests.e2e.checkouts import RELABELS, Repository, repository

pytestmark = pytest.mark.filterwarnings("ignore")

KEY = "k" * 32
AGAIN = ("desk: replays of an earlier gate, judged anew",)


class Replayed(Exception):
    """A run was replayed."""


def refuse(done: int, total: int) -> None:
    """Told of each run that is replayed."""
    raise Replayed


@pytest.fixture(scope="module")
def repo(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    """A repository whose head relabels."""
    folder = tmp_path_factory.mktemp("repo")
    made = repository(folder)
    made.change("agents/desk/agent.py", *RELABELS)
    cache = {"cache_dir": folder / "cache", "cache_key": KEY}
    return Repository(folder=folder, options=cache)


def test_a_push_that_changes_nothing_replays_nothing_and_has_the_same_verdict(
    repo: Repository,
) -> None:
    """The policy is not kept: it is that of the day."""
    with pytest.raises(Replayed):
        repo.gate(progress=refuse)
    first = repo.gate()
    assert (first.verdict.decision, first.remarks) == (Decision.BLOCK, ())
    again = repo.gate(progress=refuse)
    assert again.remarks == AGAIN
    assert digest_of(again.verdict) == digest_of(first.verdict)
    relaxed = repo.gate(progress=refuse, fail_on=frozenset())
    assert relaxed.verdict.decision is Decision.PASS
    repo.write("docs/how.md", "Words.\n")
    assert repo.gate(progress=refuse).remarks == AGAIN
    repo.write("shared/tax.py", "RATE = 19\n")
    with pytest.raises(Replayed):
        repo.gate(progress=refuse)


def test_without_a_secret_nothing_is_kept_and_that_is_said(
    repo: Repository, tmp_path: Path
) -> None:
    judgement = repo.gate(cache_key=None, cache_dir=tmp_path / "fresh")
    (remark,) = judgement.remarks
    assert remark.startswith("nothing was cached: BACKSTOP_CACHE_KEY is not set")
    assert not (tmp_path / "fresh").exists()
