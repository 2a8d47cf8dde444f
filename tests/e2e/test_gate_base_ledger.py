"""The ledger that a change is judged by is the base's; what the change does to its own is told."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import pytest

from backstop.clock import SystemClock
from backstop.core.ledgerfile import read
from backstop.core.verdict import Decision
from backstop.errors import BackstopError, ConfigError
from backstop.gate.request import Ancestor, Judgement
from backstop.reports.document import digest_of
from tests.e2e.checkouts import RELABELS, Repository, repository
from tests.e2e.stored import filled

pytestmark = pytest.mark.filterwarnings("ignore")

LEDGER = "ledgers/desk.jsonl"


@pytest.fixture
def repo(tmp_path: Path) -> Repository:
    """A repository whose head relabels what the base pays."""
    made = repository(tmp_path)
    made.change("agents/desk/agent.py", *RELABELS)
    return made


def told(judgement: Judgement) -> tuple[Decision, int, str]:
    """Decision, duplicates, and all that is said of the one agent."""
    (agent,) = judgement.verdict.agents
    return agent.decision, agent.counts["duplicate"], " | ".join((*agent.why, *agent.notes))


def test_a_change_is_judged_by_the_ledger_of_its_base(repo: Repository) -> None:
    decision, duplicates, said = told(repo.gate())
    assert (decision, duplicates) == (Decision.BLOCK, 1)
    assert "ledger" not in said


def test_a_change_that_empties_its_ledger_is_judged_by_the_base_s_and_told_so(
    repo: Repository,
) -> None:
    """It would be a pass by its own."""
    lines = (repo.head / LEDGER).read_text("utf-8").splitlines(keepends=True)
    repo.write(LEDGER, lines[0] + lines[-1])
    decision, duplicates, said = told(repo.gate())
    assert (decision, duplicates) == (Decision.BLOCK, 1)
    assert "this change edits its ledger; it was judged by the base's" in said


@pytest.mark.parametrize("place", ["ledgers/other.jsonl", "sqlite:///mine.db"])
def test_a_change_that_names_another_ledger_is_judged_by_the_base_s(
    place: str, repo: Repository
) -> None:
    repo.change("backstop.yaml", LEDGER, f"'{place}'")
    if "://" not in place:
        (repo.head / LEDGER).rename(repo.head / place)
        repo.write(place, "no ledger at all")
    decision, _, said = told(repo.gate())
    assert decision is Decision.BLOCK
    assert "; it was judged by the base's" in said


@pytest.mark.parametrize("what", ["agents/desk", LEDGER])
def test_d1_a_base_that_names_a_place_in_the_change_itself_is_an_error(
    what: str, repo: Repository
) -> None:
    """D1: held against itself a change is never found wanting: its ledger and its control run."""
    for side in (repo.base, repo.head):
        config = side / "backstop.yaml"
        config.write_text(config.read_text("utf-8").replace(what, str(repo.head / what)), "utf-8")
    with pytest.raises(ConfigError, match="lies in the change") as raised:
        repo.gate()
    assert raised.value.slug == "base-elsewhere"


def test_d1_so_is_one_that_names_a_store_in_the_change(repo: Repository) -> None:
    """D1: a store may be a file that the change brings along."""
    for side in (repo.base, repo.head):
        config = side / "backstop.yaml"
        text = config.read_text("utf-8").replace(LEDGER, f"'sqlite:///{repo.head}/store.db'")
        config.write_text(text, "utf-8")
    with pytest.raises(ConfigError, match="lies in the change"):
        repo.gate()


def test_what_a_change_puts_in_place_of_its_ledger_is_not_even_opened(repo: Repository) -> None:
    """A pipe there would be waited for without end."""
    (repo.head / LEDGER).unlink()
    (repo.head / LEDGER).symlink_to("/dev/zero")
    assert told(repo.gate())[0] is Decision.BLOCK


@pytest.mark.parametrize("allow_empty", [False, True])
def test_d5_a_change_that_deletes_its_ledger_is_no_pass(
    repo: Repository, *, allow_empty: bool
) -> None:
    """D5: nothing makes it one."""
    (repo.head / LEDGER).unlink()
    decision, _, said = told(repo.gate(allow_empty=allow_empty))
    assert (decision, said) == (Decision.INCONCLUSIVE, "its ledger vanished")


def test_g07_a_base_without_a_snapshot_says_so_and_is_no_pass(repo: Repository) -> None:
    """G07: and not because of what the change brings along: that one would be judged by itself."""
    (repo.base / LEDGER).unlink()
    judgement = repo.gate()
    decision, _, said = told(judgement)
    assert (decision, judgement.verdict.exit_code) == (Decision.INCONCLUSIVE, 3)
    assert "neither its commit nor an ancestor at hand has that file" in said


def test_g07_the_nearest_ancestor_that_has_a_snapshot_stands_in_and_is_named(
    repo: Repository, tmp_path: Path
) -> None:
    """G07: the verdict is on that ledger, and says whose it is."""
    expected = repo.gate().verdict.agents[0].ledger
    moved = (repo.base / LEDGER).rename(tmp_path / "earlier.jsonl")
    asked: list[Path] = []

    def ancestors(file: Path) -> Ancestor:
        asked.append(file)
        return Ancestor(commit="c0ffee" * 6 + "abcd", file=moved)

    judgement = repo.gate(ancestors=ancestors)
    decision, duplicates, said = told(judgement)
    assert asked == [repo.base / LEDGER]
    assert (decision, duplicates) == (Decision.BLOCK, 1)
    assert "judged by that of c0ffeec0ffee, the nearest ancestor that has one" in said
    assert judgement.verdict.agents[0].ledger == expected
    assert judgement.ledgers == {"desk": f"desk.jsonl of commit {'c0ffee' * 6}abcd"}


def test_g07_an_ancestor_that_has_none_either_is_no_pass(repo: Repository) -> None:
    """G07: own exit code, however the search went."""
    (repo.base / LEDGER).unlink()
    assert told(repo.gate(ancestors=lambda _: None))[0] is Decision.INCONCLUSIVE


def test_g08_the_change_that_brings_backstop_in_is_neutral_where_that_is_allowed(
    repo: Repository,
) -> None:
    """G08: not green by accident, not red for ever."""
    (repo.base / "backstop.yaml").unlink()
    (repo.head / LEDGER).unlink()
    assert repo.gate().verdict.exit_code == 3
    allowed = repo.gate(allow_empty=True)
    assert (allowed.verdict.exit_code, told(allowed)[2]) == (
        0,
        "NEW: the base does not have this agent",
    )


def test_g08_a_first_ledger_is_compared_with_and_said_to_come_with_the_change(
    repo: Repository,
) -> None:
    """G08: the base has nothing that could be held against it."""
    (repo.base / "backstop.yaml").unlink()
    decision, duplicates, said = told(repo.gate())
    assert (decision, duplicates) == (Decision.BLOCK, 1)
    assert "comes with this change" in said
    (repo.base / "backstop.yaml").write_text(
        "version: 1\nagents: {desk: {path: agents/desk}}\n", encoding="utf-8"
    )
    assert "comes with this change" in told(repo.gate())[2]


def test_g13_two_gates_on_one_change_are_one_verdict_wherever_they_ran(
    repo: Repository, tmp_path: Path
) -> None:
    """G13: nothing of the place or the time gets into what is compared."""
    first = repo.gate()
    elsewhere = Repository(folder=tmp_path / "moved")
    elsewhere.folder.mkdir()
    repo.base.rename(elsewhere.base)
    repo.head.rename(elsewhere.head)
    assert digest_of(elsewhere.gate().verdict) == digest_of(first.verdict)


def test_a_store_that_cannot_be_asked_is_an_error_and_never_a_verdict(repo: Repository) -> None:
    for url, slug in (("sqlite:///none.db", "store-missing"), ("oracle://x/y", "store-url")):
        text = (repo.head / "backstop.yaml").read_text("utf-8").replace(LEDGER, f"'{url}'")
        (repo.base / "backstop.yaml").write_text(text, encoding="utf-8")
        with pytest.raises(BackstopError) as caught:
            repo.gate(allow_empty=True)
        assert caught.value.slug == slug


def test_the_ledger_of_the_base_s_store_is_pulled_as_of_one_instant(
    repo: Repository, tmp_path: Path
) -> None:
    """What is written after that instant is not in it, and the file of the head is not read."""
    ledger = read((repo.base / LEDGER).read_bytes(), name="l")
    url = f"sqlite:///{tmp_path}/production.db"
    filled(url, ledger.header, ledger.events)
    text = (repo.base / "backstop.yaml").read_text("utf-8").replace(LEDGER, f"'{url}'")
    (repo.base / "backstop.yaml").write_text(text, encoding="utf-8")
    judgement = repo.gate()
    assert told(judgement)[:2] == (Decision.BLOCK, 1)
    origin = judgement.ledgers["desk"]
    assert origin.startswith(f"{url} as of ")
    assert datetime.fromisoformat(origin.rpartition(" ")[2]) < SystemClock().now()
