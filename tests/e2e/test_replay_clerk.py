"""An agent whose model sees the whole conversation: recorded by the guard, replayed changed."""

from __future__ import annotations

import asyncio
import importlib.util
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from google.adk.apps import App
from google.adk.models.google_llm import Gemini
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import Runner
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.genai import types

from backstop.adapters.content import version_of
from backstop.adapters.memory import MemoryStore
from backstop.core.canon import CANON_VERSION
from backstop.core.declaration import Declaration, Namespace
from backstop.core.events import FORMAT, Header
from backstop.core.intents import Answered, Pass
from backstop.core.ledgerfile import Ledger, read
from backstop.core.redaction import RedactionKey
from backstop.core.sealing import seal_lines
from backstop.core.verdict import Decision
from backstop.guard.journal import Journal
from backstop.guard.plugin.recorder import RecordingPlugin
from tests.e2e.replaying import findings, replayed, verdict

pytestmark = pytest.mark.filterwarnings("ignore")

CLERK = '''
from google.adk.agents import LlmAgent
from google.adk.tools import ToolContext


def check(po: str) -> dict:
    """Says whether an order is free."""
    return {"po": po, "free": True}


def pay(vendor: str, amount: float, tool_context: ToolContext) -> dict:
    """Pays a vendor."""
    tool_context.state["paid"] = vendor
    return {"ok": True, "amount": amount}


def mail(to: str) -> dict:
    """Sends a mail."""
    return {"sent": to}


def before(tool, args, tool_context):
    pass


root_agent = LlmAgent(
    name="clerk",
    model="gemini-3.5-flash",
    instruction="You pay what is due.",
    tools=[check, pay, mail],
    before_tool_callback=before,
)
'''
DECLARED = {
    "check": Declaration(tool="check", effect=False),
    "pay": Declaration(tool="pay", identity=("vendor",)),
    "mail": Declaration(tool="mail", identity=("to",)),
}


class Ticking:
    """A second passes whenever somebody looks."""

    def __init__(self) -> None:
        self._now = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)

    def now(self) -> datetime:
        self._now += timedelta(seconds=1)
        return self._now


def called(*asked: tuple[str, dict[str, Any]]) -> list[types.Part]:
    """A model's answer that calls tools."""
    return [types.Part(function_call=types.FunctionCall(name=n, args=a)) for n, a in asked]


STEPS = (
    [
        called(("check", {"po": "7"}), ("pay", {"vendor": "acme-corp", "amount": 12.5})),
        [types.Part(text="Paid.")],
    ],
    [called(("check", {"po": "8"})), called(("mail", {"to": "bo"})), [types.Part(text="Told.")]],
)


@dataclass(frozen=True, kw_only=True)
class Office:
    """Where versions of the clerk live."""

    folder: Path

    def version(self, name: str, *changes: tuple[str, str]) -> Path:
        """A version of the clerk with texts replaced."""
        source = CLERK
        for old, new in changes:
            assert old in source
            source = source.replace(old, new)
        agent = self.folder / name / "clerk"
        agent.mkdir(parents=True)
        (agent / "agent.py").write_text(source)
        return agent

    def ledger(
        self,
        agent: Path,
        *,
        closed: bool = False,
        declared: Mapping[str, Declaration] = DECLARED,
        key: RedactionKey | None = None,
    ) -> Ledger:
        """What the guard writes down while the clerk does its two steps."""
        store = MemoryStore(clock=Ticking())
        journal = Journal(
            store=store,
            namespace=Namespace(agent="clerk"),
            declarations=declared,
            version=version_of(agent),
            owner="w",
            redaction_key=key,
        )
        asyncio.run(_work(agent, journal, closed=closed))
        header = Header(
            format=FORMAT,
            agent="clerk",
            canon=CANON_VERSION,
            guarded=True,
            tools={name: known.digest for name, known in declared.items()},
            declarations={known.digest: known for known in declared.values()},
        )
        return read(b"".join(seal_lines(header, list(store.read()))), name="clerk.jsonl")


async def _work(agent: Path, journal: Journal, *, closed: bool) -> None:
    spec = importlib.util.spec_from_file_location("clerk_recorded", agent / "agent.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    root = module.root_agent
    lines = [line for step in STEPS for line in step]
    root.model = Gemini(model=root.model)

    async def answer(
        request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        yield LlmResponse(content=types.Content(role="model", parts=lines.pop(0)))

    vars(root.model)["generate_content_async"] = answer
    sessions = InMemorySessionService()
    app = App(name="clerk", root_agent=root, plugins=[RecordingPlugin(journal)])
    runner = Runner(app=app, session_service=sessions)
    state = {"budget": 100}
    await sessions.create_session(app_name="clerk", user_id="u", session_id="r1", state=state)
    journal.open_run("r1", app="clerk", user="u", state=state)
    for cursor in range(len(STEPS)):
        message = types.Content(role="user", parts=[types.Part(text=f"tick {cursor}")])
        session = await sessions.get_session(app_name="clerk", user_id="u", session_id="r1")
        assert session is not None
        attempt = journal.begin(
            "r1",
            cursor=cursor,
            trigger="tick",
            message=message.model_dump(mode="json", exclude_none=True),
            state=session.state,
        )
        with journal.within(attempt):
            async for _ in runner.run_async(user_id="u", session_id="r1", new_message=message):
                pass
        journal.end(attempt, outcome="done")
        journal.advance(attempt)
    if closed:
        journal.close_run("r1", status="complete")


@pytest.fixture
def office(tmp_path: Path) -> Office:
    """A place for versions."""
    return Office(folder=tmp_path)


def test_the_version_that_wrote_the_ledger_matches_in_full_and_in_handover(office: Office) -> None:
    """S2, A5: the rebuilt session shows the model what the recorded one did, digest for digest."""
    agent = office.version("v1")
    ledger = office.ledger(agent)
    # Another content digest, so that nothing is taken on trust.
    again = office.version("v1-again", ("You pay", "You pay"), ("def before", "def  before"))
    done = replayed(ledger, again)
    assert [(i.replay, i.tool, i.answered, i.assumed) for i in done.intents] == [
        (Pass.FULL, "pay", Answered.RECORDED, False),
        (Pass.FULL, "mail", Answered.RECORDED, False),
        (Pass.HANDOVER, "pay", Answered.RECORDED, False),
        (Pass.HANDOVER, "mail", Answered.RECORDED, False),
    ]
    (run,) = done.runs
    assert (run.drift, run.steps_assumed, run.not_replayable) == ("none", 0, None)
    found = verdict(ledger, done)
    assert (found.decision, found.counts["match"]) == (Decision.PASS, 2)


def test_a_relabelled_call_is_one_finding_and_no_drift_of_all_that_follows(office: Office) -> None:
    """A5: the substituted call and its answer are compared as their recorded counterparts."""
    ledger = office.ledger(office.version("v1"), closed=True)
    change = '    if "vendor" in args:\n        args["vendor"] = "ACME Corp"\n'
    relabelled = office.version("v2", ("    pass\n", change))
    done = replayed(ledger, relabelled)
    (run,) = done.runs
    assert (run.drift, run.drifted) == ("none", {})
    found = verdict(ledger, done)
    assert findings(found) == {"DUPLICATE relabelled": 1}
    assert (found.decision, found.counts["match"]) == (Decision.BLOCK, 1)


def test_a_rewritten_prompt_is_no_pass_though_nothing_differs(office: Office) -> None:
    """D2: answered from the old record it shows no difference; the stretch is assumed."""
    ledger = office.ledger(office.version("v1"), closed=True)
    done = replayed(ledger, office.version("v2", ("what is due", "what you like")))
    (run,) = done.runs
    assert (run.drift, run.drifted) == ("drifted", {"clerk": ("instruction",)})
    assert (run.steps_assumed, run.assumed_from) == (2, 0)
    found = verdict(ledger, done)
    assert not findings(found)
    assert found.decision is Decision.INCONCLUSIVE


REMEMBERS = (
    "    pass\n",
    """    if tool.name == "pay":
        tool_context.state["poId"] = 7
    if tool.name == "mail" and "poId" not in tool_context.state:
        args["to"] = "nobody"
""",
)


def test_s2_a_version_that_cannot_read_the_old_state_is_found_by_the_handover(
    office: Office,
) -> None:
    """S2: v1 writes `poId`, N reads `po_id`: the full replay matches, the handover does not."""
    ledger = office.ledger(office.version("v1", REMEMBERS))
    done = replayed(ledger, office.version("v2", REMEMBERS, ("poId", "po_id")))
    full = [i for i in done.intents if i.replay is Pass.FULL]
    assert [i.answered for i in full] == [Answered.RECORDED, Answered.RECORDED]
    found = verdict(ledger, done)
    assert found.counts["match"] == 2
    (finding,) = [one.divergence for one in found.judged]
    assert (finding.tool, finding.step, finding.handover) == ("mail", "s1", True)
    assert found.decision is Decision.BLOCK


def test_a_version_that_breaks_is_inconclusive_with_the_reason(office: Office) -> None:
    ledger = office.ledger(office.version("v1"), closed=True)
    broken = office.version("v2", ("    pass\n", '    raise ValueError("out of luck")\n'))
    done = replayed(ledger, broken)
    (run,) = done.runs
    assert run.not_replayable is not None
    assert run.not_replayable.startswith("step s0: the candidate raised ValueError: out of luck")
    assert verdict(ledger, done).decision is Decision.INCONCLUSIVE
