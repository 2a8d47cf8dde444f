"""Agents of every shape, recorded behind the guard and replayed: unchanged, and changed."""

from __future__ import annotations

from pathlib import Path

import pytest
from google.adk.models.llm_response import LlmResponse
from google.genai import types

from backstop.core import ledgerfile
from backstop.core.declaration import Declaration
from backstop.core.events import CallAnswered
from backstop.core.ledgerfile import Ledger
from backstop.core.sealing import seal_lines
from backstop.core.verdict import Decision
from tests.e2e.replaying import findings, replayed, verdict
from tests.e2e.studio import Pending, Studio, Trigger, answering, called, said

pytestmark = pytest.mark.filterwarnings("ignore")

DECLARED = {
    "pay": Declaration(tool="pay", identity=("vendor",)),
    "mail": Declaration(tool="mail", identity=("to",)),
    "order": Declaration(tool="order", identity=("sku",)),
    "done": Declaration(tool="done", effect=False),
    "approve": Declaration(tool="approve", identity=("what",)),
}
PAY = '''
from google.adk.agents import LlmAgent, LoopAgent, ParallelAgent, SequentialAgent
from google.adk.tools import FunctionTool, LongRunningFunctionTool, ToolContext
from google.adk.tools.agent_tool import AgentTool

MODEL = "gemini-3.5-flash"
PAID = []


def pay(vendor: str) -> dict:
    """Pays."""
    PAID.append(vendor)
    return {"ok": True}


def mail(to: str) -> dict:
    """Mails."""
    return {"sent": to}
'''
YES = answering("adk_request_confirmation", {"confirmed": True})
NO = answering("adk_request_confirmation", {"confirmed": False})


@pytest.fixture
def studio(tmp_path: Path) -> Studio:
    """A place for versions."""
    return Studio(folder=tmp_path)


def verified(ledger: Ledger) -> Ledger:
    """The ledger, which `ledger verify` accepts too."""
    ledgerfile.verify((b"".join(seal_lines(ledger.header, list(ledger.events))),), name="x")
    return ledger


LOOP = f"""{PAY}
worker = LlmAgent(name="worker", model=MODEL, instruction="Pay.", tools=[pay])
root_agent = LoopAgent(name="desk", sub_agents=[worker], max_iterations=1)
"""


def test_a_loop_that_goes_round_once_more_is_no_pass(studio: Studio) -> None:
    """An agent that had finished is asked again: nobody knows what it would pay then."""
    agent = studio.version("v1", LOOP)
    models = {"worker": [called(("pay", {"vendor": "x"})), said("paid")]}
    ledger = verified(studio.ledger(agent, steps=["go"], models=models, declared=DECLARED))
    assert verdict(ledger, replayed(ledger, agent)).decision is Decision.PASS
    more = studio.version("v2", LOOP, ("max_iterations=1", "max_iterations=2"))
    found = verdict(ledger, replayed(ledger, more))
    assert found.decision is Decision.INCONCLUSIVE
    assert any("agent worker asks its model for the 3rd time" in why for why in found.why)


STEERED = f'''{PAY}

def done(tool_context: ToolContext) -> dict:
    """Ends the loop."""
    tool_context.actions.escalate = True
    tool_context.actions.skip_summarization = True
    return {{}}


worker = LlmAgent(name="worker", model=MODEL, instruction="Pay.", tools=[pay, done])
teller = LlmAgent(name="teller", model=MODEL, instruction="Tell.", tools=[mail])
root_agent = SequentialAgent(
    name="desk",
    sub_agents=[LoopAgent(name="loop", sub_agents=[worker], max_iterations=5), teller],
)
'''


def test_what_a_tools_body_does_to_the_flow_of_a_run_is_done_again(studio: Studio) -> None:
    """No body runs in a replay; the loop that it ended must end all the same."""
    agent = studio.version("v1", STEERED)
    models = {
        "worker": [called(("pay", {"vendor": "x"})), said("on"), called(("done", {}))],
        "teller": [called(("mail", {"to": "bo"})), said("told")],
    }
    ledger = verified(studio.ledger(agent, steps=["go"], models=models, declared=DECLARED))
    found = verdict(ledger, replayed(ledger, agent))
    assert (found.decision, found.counts["match"]) == (Decision.PASS, 2)


CONFIRMED = f"""{PAY}
root_agent = LlmAgent(
    name="desk", model=MODEL, tools=[FunctionTool(pay, require_confirmation=True)]
)
"""
ASKS_ITSELF = CONFIRMED.replace(", require_confirmation=True", "").replace(
    '''def pay(vendor: str) -> dict:
    """Pays."""
''',
    '''def pay(vendor: str, tool_context: ToolContext) -> dict:
    """Pays."""
    if tool_context.tool_confirmation is None:
        tool_context.request_confirmation(hint="sure?")
        return {"waiting": True}
''',
)


@pytest.mark.parametrize("answer", [YES, NO], ids=["yes", "no"])
def test_a_call_that_waits_for_a_confirmation_is_no_silent_skip(
    studio: Studio, answer: Trigger
) -> None:
    """A11: the model asked for it in one step, a person decided in another."""
    agent = studio.version("v1", CONFIRMED)
    models = {"desk": [called(("pay", {"vendor": "x"})), said("so be it")]}
    ledger = verified(
        studio.ledger(agent, steps=["go", answer], models=models, declared=DECLARED, closed=False)
    )
    done = replayed(ledger, agent)
    found = verdict(ledger, done)
    assert (found.decision, found.counts["match"]) == (Decision.PASS, int(answer is YES))


def test_a_version_that_does_not_ask_first_any_more_pays_too_early(studio: Studio) -> None:
    """G5: nobody answers what is not asked, so the step of the answer sets nothing off."""
    agent = studio.version("v1", CONFIRMED)
    models = {"desk": [called(("pay", {"vendor": "x"})), said("so be it")]}
    ledger = studio.ledger(agent, steps=["go", YES], models=models, declared=DECLARED)
    hasty = studio.version("v2", CONFIRMED, (", require_confirmation=True", ""))
    found = verdict(ledger, replayed(ledger, hasty))
    assert findings(found) == {"MUTATED moved earlier": 1}
    assert found.decision is Decision.INCONCLUSIVE


def test_a_tool_that_asks_a_person_first_is_paid_once_and_after_the_answer(studio: Studio) -> None:
    """A25: what waits is free to run after the yes; the guard must not take it for done."""
    agent = studio.version("v1", ASKS_ITSELF)
    models = {"desk": [called(("pay", {"vendor": "x"})), said("waiting"), said("paid")]}
    ledger = verified(
        studio.ledger(agent, steps=["go", YES], models=models, declared=DECLARED, closed=False)
    )
    assert [type(event).__name__ for event in ledger.events if hasattr(event, "fence")] == [
        "EffectClaimed",
        "EffectFailed",
        "EffectClaimed",
        "EffectCommitted",
    ]
    found = verdict(ledger, replayed(ledger, agent))
    assert (found.decision, found.counts["match"]) == (Decision.PASS, 1)


NESTED = f'''{PAY}
from backstop.guard.effect import effect


@effect
def order(sku: str) -> dict:
    """Orders."""
    return {{"ordered": sku}}


def done(sku: str) -> dict:
    """Looks something up, and orders."""
    return order(sku)


plain = pay


def pay(vendor: str) -> dict:
    """Pays."""
    order("receipt")
    return plain(vendor)


root_agent = LlmAgent(name="desk", model=MODEL, instruction="Pay.", tools=[pay, done])
'''


def test_effects_in_a_tools_body_are_asked_for_with_it(studio: Studio) -> None:
    """No body runs in a replay; what it asked for is neither dropped nor hidden."""
    agent = studio.version("v1", NESTED)
    asked = called(("pay", {"vendor": "x"}), ("done", {"sku": "7"}))
    ledger = verified(
        studio.ledger(
            agent, steps=["go"], models={"desk": [asked, said("paid")]}, declared=DECLARED
        )
    )
    found = verdict(ledger, replayed(ledger, agent))
    assert (found.decision, found.counts["match"]) == (Decision.PASS, 3)


def response(parts: list[types.Part], *, partial: bool = False) -> LlmResponse:
    """One of several responses to a streamed request."""
    return LlmResponse(content=types.Content(role="model", parts=parts), partial=partial)


def test_a04_a_streamed_answer_in_pieces_is_one_answer(studio: Studio) -> None:
    """A04: partial events are no effects; the words and the call are served together."""
    source = f'{PAY}\nroot_agent = LlmAgent(name="desk", model=MODEL, tools=[pay])\n'
    agent = studio.version("v1", source)
    call = called(("pay", {"vendor": "x"}))
    streamed = (
        response(said("I "), partial=True),
        response(call, partial=True),
        response(said("I pay")),
        response(call),
    )
    models = {"desk": [streamed, said("paid")]}
    ledger = studio.ledger(agent, steps=["go"], models=models, declared=DECLARED, streaming=True)
    found = verdict(verified(ledger), replayed(ledger, agent))
    assert (found.decision, found.counts["match"]) == (Decision.PASS, 1)


def test_a01_a_call_made_twice_in_one_breath_runs_once_and_is_answered_twice(
    studio: Studio,
) -> None:
    """A01: the second gets the recorded result under its own id, without waiting for ever."""
    slow = PAY.replace(
        'def pay(vendor: str) -> dict:\n    """Pays."""\n',
        'async def pay(vendor: str) -> dict:\n    """Pays."""\n    import asyncio\n'
        "    await asyncio.sleep(0.05)\n",
    )
    agent = studio.version(
        "v1", f'{slow}\nroot_agent = LlmAgent(name="desk", model=MODEL, tools=[pay])\n'
    )
    twice = called(("pay", {"vendor": "x"}), ("pay", {"vendor": "x"}))
    ledger = verified(
        studio.ledger(
            agent, steps=["go"], models={"desk": [twice, said("paid")]}, declared=DECLARED
        )
    )
    assert [e.how for e in ledger.events if isinstance(e, CallAnswered)] == ["recorded"]
    found = verdict(ledger, replayed(ledger, agent))
    assert (found.decision, found.counts["match"], found.counts["absorbed"]) == (
        Decision.PASS,
        1,
        1,
    )


HANDED = '''
from google.adk.agents import LlmAgent


def pay(vendor: str) -> dict:
    """Pays."""
    return {"ok": True}


def after(callback_context):
    callback_context.state["poId"] = "p7"


root_agent = LlmAgent(
    name="desk",
    model="gemini-3.5-flash",
    instruction="Order {poId?}.",
    tools=[pay],
    after_agent_callback=after,
)
'''


def test_s2_an_instruction_that_cannot_read_the_old_state_is_no_pass(studio: Studio) -> None:
    """S2, A5: the full replay matches, and so does what is asked; but the model is told less."""
    agent = studio.version("v1", HANDED)
    models = {"desk": [said("ok"), called(("pay", {"vendor": "x"})), said("paid")]}
    ledger = studio.ledger(
        agent, steps=["go", "on"], models=models, declared=DECLARED, closed=False
    )
    assert verdict(ledger, replayed(ledger, agent)).decision is Decision.PASS
    renamed = studio.version("v2", HANDED, ("poId", "po_id"))
    done = replayed(ledger, renamed)
    assert done.runs[0].drifted == {"desk": ("instruction",)}
    assert done.runs[0].handed_over == (1,)
    assert verdict(ledger, done).decision is Decision.INCONCLUSIVE


TREE = f"""{PAY}

def after(tool, args, tool_context, tool_response):
    return {{"told": "otherwise"}} if tool.name == "mail" else None


inner = LlmAgent(name="inner", model=MODEL, instruction="Inner.", tools=[mail])
left = LlmAgent(name="left", model=MODEL, instruction="Left.", tools=[pay])
right = LlmAgent(
    name="right", model=MODEL, instruction="R.", tools=[AgentTool(inner), mail],
    after_tool_callback=after,
)
child = LlmAgent(name="child", instruction="Child.", description="c", tools=[mail])
both = SequentialAgent(
    name="flow", description="f", sub_agents=[ParallelAgent(name="both", sub_agents=[left, right])]
)
root_agent = LlmAgent(name="desk", model=MODEL, instruction="Root.", sub_agents=[child, both])
"""


def test_a_tree_of_agents_side_by_side_is_replayed_alike_each_time(studio: Studio) -> None:
    """Transfers, agents as tools, inherited models; the event logs are equal to the byte."""
    agent = studio.version("v1", TREE)
    models = {
        "desk": [
            called(("transfer_to_agent", {"agent_name": "flow"})),
            called(("transfer_to_agent", {"agent_name": "child"})),
        ],
        "left": [called(("pay", {"vendor": "x"}), ("pay", {"vendor": "y"})), said("left done")],
        "right": [called(("inner", {"request": "bo"}), ("mail", {"to": "al"})), said("right done")],
        "inner": [called(("mail", {"to": "bo"})), said("inner done")],
        "child": [called(("mail", {"to": "cy"})), said("bye")],
    }
    ledger = verified(
        studio.ledger(agent, steps=["go", "on"], models=models, declared=DECLARED, closed=False)
    )
    first = replayed(ledger, agent)
    found = verdict(ledger, first)
    assert (found.decision, found.counts["match"]) == (Decision.PASS, 5)
    # Another content digest: the handed session is compared, and the base vouches for it.
    alike = studio.version("v2", TREE, ("inner = LlmAgent", "inner  = LlmAgent"))
    control = replayed(ledger, agent, is_control=True)
    second = replayed(ledger, alike, base=control)
    assert (second.intents, second.logs) == (first.intents, first.logs)
    assert verdict(ledger, second).decision is Decision.PASS


WORK = '''
from google.adk.apps import App
from google.adk.events.request_input import RequestInput
from google.adk.tools import FunctionTool
from google.adk.workflow import START, Workflow, node


def order(sku: str) -> dict:
    """Orders."""
    return {"ok": sku}


def pay(vendor: str) -> dict:
    """Pays."""
    return {"ok": vendor}


ORDER, PAY = FunctionTool(order), FunctionTool(pay)


@node(rerun_on_resume=True)
async def work(ctx, node_input):
    await ctx.run_node(ORDER, node_input={"sku": "a"})
    if "one" not in ctx.resume_inputs:
        yield RequestInput(interrupt_id="one", message="ok?")
        return
    await ctx.run_node(PAY, node_input={"vendor": "b"})
    if "two" not in ctx.resume_inputs:
        yield RequestInput(interrupt_id="two", message="really?")
        return
    await ctx.run_node(ORDER, node_input={"sku": "c"})
    yield "done"


app = App(name="desk", root_agent=Workflow(name="desk", edges=[(START, work)]))
'''


def yes(pending: Pending) -> types.Content:
    """The answer to the one question that a workflow asks."""
    ((call, (name, _)),) = pending.items()
    told = types.FunctionResponse(id=call, name=name, response={"result": "yes"})
    return types.Content(role="user", parts=[types.Part(function_response=told)])


@pytest.fixture(scope="module")
def worked(tmp_path_factory: pytest.TempPathFactory) -> tuple[Studio, Ledger, Path]:
    """A workflow that asks twice, recorded in a run that is open still."""
    studio = Studio(folder=tmp_path_factory.mktemp("work"))
    agent = studio.version("v1", WORK)
    ledger = studio.ledger(
        agent, steps=["go", yes, yes], models={}, declared=DECLARED, closed=False
    )
    return studio, verified(ledger), agent


def test_f02_a_node_with_two_questions_does_each_thing_once(
    worked: tuple[Studio, Ledger, Path],
) -> None:
    """F02: in full and handed over, between the answers."""
    _, ledger, agent = worked
    done = replayed(ledger, agent)
    assert len(done.intents) == 6
    found = verdict(ledger, done)
    assert (found.decision, found.counts["match"]) == (Decision.PASS, 3)


def test_a14_a_version_that_stops_after_the_first_answer_drops_the_rest(
    worked: tuple[Studio, Ledger, Path],
) -> None:
    """A03, A14: MISSING, where the framework would say that nobody asked what is answered."""
    studio, ledger, _ = worked
    stops = ("    await ctx.run_node(PAY", "    return\n    await ctx.run_node(PAY")
    found = verdict(ledger, replayed(ledger, studio.version("stops", WORK, stops)))
    assert findings(found)["MISSING dropped"] == 2


def test_g6_a_tool_that_goes_by_another_name_would_order_again(
    worked: tuple[Studio, Ledger, Path],
) -> None:
    """G6: through a real candidate, whose code calls the renamed tool."""
    studio, ledger, _ = worked
    renamed = studio.version(
        "renamed",
        WORK,
        ("def order(", "def purchase("),
        ("FunctionTool(order)", "FunctionTool(purchase)"),
    )
    found = verdict(ledger, replayed(ledger, renamed))
    assert found.decision is Decision.BLOCK
    assert findings(found)["DUPLICATE renamed"] == 2
