"""What names an effect, on the real framework: rules that change, and the caller's own keys."""

from __future__ import annotations

import asyncio
from pathlib import Path
from threading import Barrier, Thread
from typing import Any

import pytest
from google.adk.workflow import START, Workflow

from backstop.adapters.sqlite.store import SqliteStore
from backstop.clock import SystemClock
from backstop.core import ledgerfile
from backstop.core.canon import CANON_VERSION
from backstop.core.declaration import Declaration, Namespace
from backstop.core.events import FORMAT, EffectClaimed, EffectCommitted, EffectFailed, Header
from backstop.core.ledgerfile import Ledger
from backstop.core.sealing import seal_lines
from backstop.core.verdict import Decision
from backstop.guard.calls import Call, intent_of, name_call
from backstop.guard.claims.capability import keyed
from backstop.guard.claims.claim import perform_now
from backstop.guard.claims.desk import Produced
from backstop.guard.claims.oldkeys import OldKeys
from backstop.guard.effect import effect
from backstop.guard.journal import Attempt, Journal, raw
from backstop.ports import Answer, Held, Recorded
from tests.e2e.replaying import findings, replayed, verdict
from tests.e2e.studio import Studio, called, said
from tests.e2e.till import Till, calls, says, told

# The framework warns about its own experimental features.
pytestmark = pytest.mark.filterwarnings("ignore")

CONFIG = """\
version: 1
agents:
  till:
    path: agent
    store: sqlite:///{store}
    tools:
      pay:
"""
PLAIN = "        identity: [order]\n"
SLUG = f"{PLAIN}        fields:\n          order: slug\n"


def with_rule(folder: Path, rule: str) -> Till:
    """A version of the till that declares `pay` so; all of a folder share one store."""
    return Till(folder=folder, config=CONFIG + rule)


def pays(order: str, amount: int = 10) -> list[Any]:
    return calls(("pay", {"order": order, "amount": amount}))


def test_k03_after_a_deploy_with_another_rule_nothing_goes_out_again(tmp_path: Path) -> None:
    """K3: `order: slug` is deployed; the redelivered step, and the new spelling, pay nothing."""
    before = with_rule(tmp_path, PLAIN)
    before.chat(before.agent(pays("Acme 7"), says("paid")), "pay")
    after = with_rule(tmp_path, SLUG)
    again, new, alike = pays("Acme 7"), pays("Bolt 8"), pays("bolt 8")
    root = after.agent(again, says("a"), new, says("b"), alike, says("c"))
    events = after.chat(root, "pay", "and the next", "again")
    assert (before.sent, after.sent) == ([("Acme 7", 10)], [("Bolt 8", 10)])
    assert [one["paid"] for one in told(events, "pay")] == ["Acme 7", "Bolt 8", "Bolt 8"]
    # Back to the rule before: it finds what the newer one did.
    back = with_rule(tmp_path, PLAIN)
    back.chat(back.agent(pays("Bolt 8"), says("paid")), "pay")
    assert back.sent == []
    back.verified()


ORDER = '''
from google.adk.agents import LlmAgent
from google.adk.apps import App
from google.adk.plugins import BasePlugin


class Guard(BasePlugin):
    """Stands for the guard, which does not act in a replay."""

    __backstop_guard__ = True


def pay(order: str, amount: int) -> dict:
    """Pays."""
    return {"ok": True}


root_agent = LlmAgent(name="desk", model="gemini-3.5-flash", instruction="Pay.", tools=[pay])
'''
GUARDED = ORDER + 'app = App(name="desk", root_agent=root_agent, plugins=[Guard("guard")])\n'


def recorded(studio: Studio, source: str, declared: Declaration, *answers: Any) -> Ledger:
    agent = studio.version("v1", source)
    ledger = studio.ledger(
        agent,
        steps=["go"],
        models={"desk": [*answers, said("done")]},
        declared={"pay": declared},
    )
    ledgerfile.verify((b"".join(seal_lines(ledger.header, list(ledger.events))),), name="x")
    return ledger


@pytest.mark.parametrize(
    ("source", "decision", "found"),
    [
        (ORDER, Decision.BLOCK, {"DUPLICATE rekeyed": 1}),
        (GUARDED, Decision.PASS, {}),
    ],
    ids=["no guard", "guard"],
)
def test_k03_a_changed_rule_passes_the_gate_where_the_guard_finds_the_old_row(
    tmp_path: Path, source: str, decision: Decision, found: dict[str, int]
) -> None:
    """K3: it takes both, a row that the guard wrote and a candidate that carries the guard."""
    studio = Studio(folder=tmp_path)
    plain = Declaration(tool="pay", identity=("order",))
    slug = Declaration(tool="pay", identity=("order",), fields={"order": ("slug",)})
    asked = called(("pay", {"order": "Acme 7", "amount": 10}))
    ledger = recorded(studio, source, plain, asked)
    agent = studio.folder / "v1" / "desk"
    done = replayed(ledger, agent, declarations={"pay": slug})
    judged = verdict(ledger, done, declarations={"pay": slug})
    assert (judged.decision, dict(findings(judged))) == (decision, found)


def test_f22_a_call_that_was_turned_away_is_told_so_in_a_replay_as_well(tmp_path: Path) -> None:
    """F22: the unchanged version asks without the amount again, and corrects itself again."""
    studio = Studio(folder=tmp_path)
    declared = Declaration(tool="pay", identity=("order",))
    short = called(("pay", {"order": "7"}))
    whole = called(("pay", {"order": "7", "amount": 10}))
    ledger = recorded(studio, ORDER, declared, short, whole)
    agent = studio.folder / "v1" / "desk"
    done = replayed(ledger, agent, declarations={"pay": declared})
    judged = verdict(ledger, done, declarations={"pay": declared})
    assert (judged.decision, dict(findings(judged))) == (Decision.PASS, {})
    assert judged.counts["match"] == 1


KEYED = '''
from google.adk.agents import LlmAgent

from backstop.guard.effect import effect


@effect(key=lambda arguments: f"{arguments['order']}/{arguments['amount']}")
def pay(order: str, amount: int, note: str = "") -> dict:
    """Pays."""
    return {"ok": True}


root_agent = LlmAgent(name="desk", model="gemini-3.5-flash", instruction="Pay.", tools=[pay])
'''


def test_k18_a_key_that_the_callers_function_makes_holds_in_production_and_in_a_replay(
    tmp_path: Path,
) -> None:
    """K18: one key for one payment, however it is noted; a replay makes the same key."""
    studio = Studio(folder=tmp_path)
    declared = Declaration(tool="pay", key=("$key",))
    asked = called(("pay", {"order": "7", "amount": 10, "note": "a"}))
    ledger = recorded(studio, KEYED, declared, asked)
    (claimed,) = [one for one in ledger.events if isinstance(one, EffectClaimed)]
    assert b'"$key":"7/10"' in bytes(claimed.args)
    done = replayed(ledger, studio.folder / "v1" / "desk")
    judged = verdict(ledger, done)
    assert (judged.decision, judged.counts["match"]) == (Decision.PASS, 1)
    assert [intent.key for intent in done.intents] == [claimed.key]


def test_k18_two_keys_of_one_call_that_differ_are_refused_and_nothing_is_done(
    tmp_path: Path,
) -> None:
    """K18: the header says A, the body says B."""
    till = Till(folder=tmp_path)

    @effect(key=["header", "meta"], name="till_ring")
    def ring(order: str, header: str, meta: str = "") -> str:
        """Rings."""
        till.sent.append(order)
        return order

    def asks(order: str, header: str, meta: str) -> list[Any]:
        return calls(("till_ring", {"order": order, "header": header, "meta": meta}))

    lines = (asks("1", "A", "B"), says("a"), asks("1", "A", "A"), says("b"), asks("2", "A", "A"))
    root = till.agent(*lines, says("c"), tools=[ring])
    events = till.chat(root, "ring", "ring", "ring")
    assert till.sent == ["1"]
    kinds = [one.get("backstop") for one in told(events, "till_ring")]
    assert kinds == ["refused", None, "conflict"]
    assert "different idempotency keys" in told(events, "till_ring")[0]["reason"]
    till.verified()


def test_a_decorated_function_is_guarded_once_as_a_tool_and_in_the_code_of_a_workflow(
    tmp_path: Path,
) -> None:
    till = Till(folder=tmp_path)

    @effect(identity=("order",), name="till_bell")
    async def bell(order: str, tone: str = "low") -> str:
        """Rings a bell."""
        till.sent.append((order, tone))
        return f"{order}!"

    async def work(node_input: Any) -> str:
        return await bell("7") + await bell("7", tone="low")

    asked = calls(("till_bell", {"order": "8"}))

    async def go() -> list[Any]:
        await till.session()
        flow = Workflow(name="till", edges=[(START, work)])
        await till.say(till.runner(flow), "ring")
        assert till.sent == [("7", "low")]
        agent = till.agent(asked, asked, says("done"), tools=[bell])
        return await till.say(till.runner(agent), "ring")

    events = asyncio.run(go())
    assert till.sent == [("7", "low"), ("8", "low")]
    assert told(events, "till_bell") == [{"result": "8!"}] * 2
    assert len(till.rows(EffectCommitted)) == 2
    declared = till.header().declarations[till.header().tools["till_bell"]]
    assert declared.identity == ("order",)
    assert declared.defaults == {"tone": "low"}
    till.verified()


def test_a_contradiction_between_code_and_configuration_refuses_that_tool_only(
    tmp_path: Path,
) -> None:
    till = with_rule(tmp_path, PLAIN)

    @effect(identity=("amount",))
    def pay(order: str, amount: int) -> str:
        """Pays."""
        till.sent.append(order)
        return order

    @effect
    def ring(order: str) -> str:
        """Rings."""
        till.sent.append(order)
        return order

    asked = calls(("pay", {"order": "7", "amount": 1}), ("ring", {"order": "8"}))
    events = till.chat(till.agent(asked, says("done"), tools=[pay, ring]), "go")
    assert till.sent == ["8"]
    assert "different things about pay: identity" in told(events, "pay")[0]["reason"]


# --- two versions at once on one file, each with a connection of its own ---


def versioned(path: Path, rule: Declaration, owner: str) -> tuple[Journal, OldKeys, Header]:
    header = Header(
        format=FORMAT,
        agent="desk",
        canon=CANON_VERSION,
        guarded=True,
        tools={rule.tool: rule.digest},
        declarations={rule.digest: rule},
    )
    store = SqliteStore(path, agent="desk", header=header, clock=SystemClock())
    journal = Journal(
        store=store,
        namespace=Namespace(agent="desk"),
        declarations={rule.tool: rule},
        version=owner,
        owner=owner,
    )
    return journal, OldKeys(namespace=journal.namespace), store.header


def asks(
    journal: Journal, keys: OldKeys, header: Header, arguments: dict[str, Any], out: list[str]
) -> Answer:
    rule = journal.declarations["order"]
    attempt = Attempt(run="r1", step="s0", cursor=0, number=1)
    call = name_call("order", arguments, rule, attempt=attempt, namespace=journal.namespace)
    assert isinstance(call, Call)
    known = keys.known_as(call, arguments, journal.store, header)

    def body() -> Produced:
        out.append(journal.version)
        return Produced(result=raw("done"))

    return perform_now(
        journal.store,
        intent_of(known.call, journal),
        body,
        bars=[intent_of(bar, journal) for bar in known.bars],
    )


def test_k03_two_versions_on_one_file_race_and_one_of_them_acts(tmp_path: Path) -> None:
    """K3: a rolling deploy; the older version was started before the newer rule was known."""
    plain = Declaration(tool="order", identity=("vendor",))
    slug = Declaration(tool="order", identity=("vendor",), fields={"vendor": ("slug",)})
    path = tmp_path / "guard.db"
    versions = [versioned(path, plain, "old"), versioned(path, slug, "new")]
    for number in range(20):
        arguments = {"vendor": f"Acme Corp {number}"}
        start, out, answers = Barrier(2), list[str](), list[Answer]()

        def go(journal: Journal, keys: OldKeys, header: Header) -> None:
            start.wait()  # noqa: B023 - it ends within this round
            answers.append(asks(journal, keys, header, arguments, out))  # noqa: B023

        threads = [Thread(target=go, args=version) for version in versions]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(out) <= 1
        assert len(answers) == 2
        assert all(isinstance(answer, Recorded | Held) for answer in answers)
        assert isinstance(asks(*versions[1], arguments, out), Recorded)
        assert len(out) == 1
    assert {row.error.type for row in versions[0][0].store.read() if isinstance(row, EffectFailed)}


def test_f20_a_plain_function_hands_our_key_on_and_is_tried_again_with_it(tmp_path: Path) -> None:
    """F20: declared in code; the provider acts once on the key, so a doubt is no end."""
    till = Till(folder=tmp_path)

    @effect(identity=("order",), capability=keyed("key", retention="1d"), name="till_order")
    def order(order: str, key: str = "") -> str:
        till.sent.append((order, key))
        if len(till.sent) == 1:
            raise ConnectionResetError("dropped")
        return "ordered"

    def work(node_input: Any) -> str:
        return str(order("7"))

    async def go() -> None:
        await till.session()
        runner = till.runner(Workflow(name="till", edges=[(START, work)]))
        for _ in range(3):
            await till.say(runner, "order")

    asyncio.run(go())
    claimed = till.rows(EffectClaimed)
    assert till.sent == [("7", claimed[0].key)] * 2
    assert len({row.key for row in claimed}) == 1
    assert [row.capability for row in claimed] == ["keyed", "keyed"]
    till.verified()


@pytest.mark.parametrize("kind", [ValueError, TimeoutError])
def test_f22_exceptions_that_the_code_vouches_for_free_the_key(
    tmp_path: Path, kind: type[Exception]
) -> None:
    """F22: only what is declared is "certainly nothing"; the rest is a doubt."""
    till = Till(folder=tmp_path)

    @effect(identity=("order",), no_effect_on=(ValueError,), name="till_try")
    def attempt(order: str) -> str:
        till.sent.append(order)
        raise kind("no")

    def work(node_input: Any) -> str:
        try:
            return str(attempt("7"))
        except ValueError as error:
            return f"caught {error}"

    async def go() -> None:
        await till.session()
        runner = till.runner(Workflow(name="till", edges=[(START, work)]))
        for _ in range(2):
            await till.say(runner, "try")

    asyncio.run(go())
    assert till.sent == (["7", "7"] if kind is ValueError else ["7"])
