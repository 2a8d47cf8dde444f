"""A bounded view of the history changes nothing that a replay says, where it is let stand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import pytest

from backstop.adapters.content import version_of
from backstop.core.events import RequestDigests
from backstop.core.ledgerfile import Ledger, read
from backstop.ports import Conversation
from backstop.replay.service import Plan, Replay, replay
from benchmarks.replay import workload
from tests.e2e.command import ROOT
from tests.e2e.replaying import SANDBOX
from tests.e2e.test_replay_clerk import Office

pytestmark = pytest.mark.filterwarnings("ignore")
SPECIMEN = ROOT / "examples/vendor_onboarding"


@dataclass(slots=True, kw_only=True)
class Overheard:
    """A conversation; `windows` are those of the runs begun in it."""

    talk: Conversation
    windows: list[int | None]

    def send(self, line: bytes) -> None:
        """Note what the driver says, and pass it on."""
        said = msgspec.json.decode(line)
        if said["t"] == "run":
            self.windows.append(said.get("window"))
        self.talk.send(line)

    def receive(self) -> bytes | None:
        """The next line."""
        return self.talk.receive()

    def close(self) -> None:
        """End it."""
        self.talk.close()


@dataclass(slots=True, kw_only=True)
class Listening:
    """The process sandbox, overheard."""

    windows: list[int | None] = field(default_factory=list)

    def start(self, agent: Path) -> Conversation:
        """Start the candidate."""
        return Overheard(talk=SANDBOX.start(agent), windows=self.windows)


def plan(
    ledger: Ledger,
    agent: Path,
    *,
    recent: int = 0,
    control: Mapping[int, RequestDigests] | None = None,
    is_control: bool = False,
) -> Plan:
    """What to replay."""
    return Plan(
        header=ledger.header,
        events=ledger.events,
        ledger=ledger.digest,
        candidate=agent,
        version=version_of(agent),
        control=control or {},
        is_control=is_control,
        recent=recent,
    )


def replayed(
    ledger: Ledger,
    agent: Path,
    *,
    recent: int,
    control: Mapping[int, RequestDigests] | None = None,
) -> tuple[Replay, list[int | None]]:
    """A replay, and the window of each pass."""
    sandbox = Listening()
    return replay(plan(ledger, agent, recent=recent, control=control), sandbox), sandbox.windows


@pytest.fixture(scope="module")
def specimen() -> Ledger:
    path = ROOT / "ledgers/vendor-onboarding.jsonl"
    return read(path.read_bytes(), name=path.name)


@pytest.mark.parametrize("version", ["v1", "v3"])
def test_the_specimen_says_the_same_in_a_window_of_one_turn(specimen: Ledger, version: str) -> None:
    bounded, windows = replayed(specimen, SPECIMEN / version, recent=1)
    whole, none = replayed(specimen, SPECIMEN / version, recent=0)
    assert bounded == whole
    assert 1 in windows
    assert set(none) == {None}


@pytest.fixture
def office(tmp_path: Path) -> Office:
    return Office(folder=tmp_path)


@pytest.mark.parametrize(("agent", "windows"), [("forgetful", [1]), ("mindful", [1, None])])
def test_a_model_that_saw_the_whole_conversation_is_shown_it_again(
    agent: str, windows: list[int | None]
) -> None:
    ledger, folder = workload.ledger(agent, events=24), workload.AGENTS / agent
    control = replay(plan(ledger, folder, is_control=True), SANDBOX)
    bounded, tried = replayed(ledger, folder, recent=1, control=control.requests)
    whole, _ = replayed(ledger, folder, recent=0, control=control.requests)
    assert bounded == whole
    assert bounded.logs == control.logs
    assert tried == windows


def test_a_relabelled_call_is_substituted_in_a_window_as_without(office: Office) -> None:
    """A5, S2: handover too."""
    ledger = office.ledger(office.version("v1"))
    change = '    if "vendor" in args:\n        args["vendor"] = "ACME Corp"\n'
    relabelled = office.version("v2", ("    pass\n", change))
    bounded, windows = replayed(ledger, relabelled, recent=1)
    assert bounded == replayed(ledger, relabelled, recent=0)[0]
    assert windows == [1, 1, 1]


def test_code_that_looks_at_the_history_is_shown_all_of_it(office: Office) -> None:
    """Its requests would say nothing: the model sees the turn at hand only."""
    forgetful = ('    instruction="You', '    include_contents="none",\n    instruction="You')
    ledger = office.ledger(office.version("v1", forgetful), closed=True)
    looks = ("    pass\n", '    args["to"] = str(len(tool_context.session.events))\n')
    bounded, windows = replayed(ledger, office.version("v2", forgetful, looks), recent=1)
    whole, _ = replayed(ledger, office.version("v3", forgetful, looks), recent=0)
    assert windows == [None]
    assert [i.args for i in bounded.intents] == [i.args for i in whole.intents]
    blind, in_view = replayed(ledger, office.version("v4", forgetful), recent=1)
    assert in_view == [1]
    assert blind.runs == whole.runs
