"""Replays in other worlds: what hangs on chance, clock and order is told apart (ADR 0035)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from backstop.core.declaration import Declaration, Namespace
from backstop.core.divergence import Kind
from backstop.core.history import effect_rows
from backstop.core.ledgerfile import Ledger
from backstop.core.verdict import AgentVerdict, Decision, Policy
from backstop.gate.comparing import Asked
from backstop.gate.judge import Recorded, judge
from tests.e2e.replaying import SANDBOX, asked, replayed
from tests.e2e.studio import Studio, called, said

pytestmark = pytest.mark.filterwarnings("ignore")

ELSEWHERE = replace(SANDBOX, world=1)

DESK = '''
import datetime, glob, os, pathlib, random, time, uuid
from google.adk.agents import LlmAgent

HERE = pathlib.Path(__file__).parent
BORN = time.time()
TAG = uuid.uuid4().hex[:8]
NAMES = "uuid random now today clock up born tag set hash process machine files glob scan".split()


def order(vendor: str, ref: str, note: dict = {}) -> dict:
    """Orders."""
    return {"ok": True}


def mail(to: str) -> dict:
    """Mails."""
    return {"sent": to}


def fill(tool, args, tool_context):
    if tool.name == "order":
        args["note"] = dict.fromkeys(NAMES, "-")


root_agent = LlmAgent(
    name="desk",
    model="gemini-3.5-flash",
    instruction="Order.",
    tools=[order, mail],
    before_tool_callback=fill,
)
'''
STEADY = 'args["note"] = dict.fromkeys(NAMES, "-")'
DECLARED = {
    "order": Declaration(tool="order", identity=("vendor", "ref")),
    "mail": Declaration(tool="mail", identity=("to",)),
}
MODELS = {
    "desk": [
        called(("order", {"vendor": "acme-corp", "ref": "PO-1"}), ("mail", {"to": "bo"})),
        said("done"),
    ]
}


@pytest.fixture(scope="module")
def studio(tmp_path_factory: pytest.TempPathFactory) -> Studio:
    """A place for versions."""
    return Studio(folder=tmp_path_factory.mktemp("worlds"))


@pytest.fixture(scope="module")
def base(studio: Studio) -> Path:
    """The version that was recorded: nothing in it hangs on chance."""
    return studio.version("base", DESK)


@pytest.fixture(scope="module")
def ledger(studio: Studio, base: Path) -> Ledger:
    return studio.ledger(base, steps=["go"], models=MODELS, declared=DECLARED)


DRAWN = {
    "uuid": "str(uuid.uuid4())",
    "random": "str(random.random())",
    "now": "datetime.datetime.now().isoformat()",
    "today": "str(datetime.date.today())",
    "clock": "str(time.time_ns())",
    "up": "str(time.monotonic())",
    "born": "str(BORN)",
    "tag": "TAG",
    "set": "','.join({'acme', 'bolt', 'corp', 'dyne', 'east'})",
    "hash": "str(hash('acme'))",
    "process": "str(os.getpid())",
    "machine": "os.uname().nodename",
    "files": "','.join(os.listdir(HERE))",
    "glob": "','.join(glob.glob('*', root_dir=HERE))",
    "scan": "','.join(entry.name for entry in os.scandir(HERE))",
}
STRICT = Policy(fail_on=frozenset(Kind))


def twice(ledger: Ledger, agent: Path) -> Asked:
    """What a version asks for, in the recorded world and in another."""
    first, other = (
        asked(replayed(ledger, agent, declarations=DECLARED, sandbox=sandbox))
        for sandbox in (SANDBOX, ELSEWHERE)
    )
    return replace(first, again=[other])


def judged(
    ledger: Ledger,
    told: Asked,
    *,
    declared: dict[str, Declaration] | None = None,
    policy: Policy | None = None,
) -> AgentVerdict:
    return judge(
        Recorded(header=ledger.header, history=effect_rows([ledger.events]), digest=ledger.digest),
        told,
        declarations=[declared or DECLARED],
        policies=[policy or Policy()],
        namespace=Namespace(agent="desk"),
        guarded=True,
    )


def test_a_version_of_which_nothing_hangs_on_chance_passes(ledger: Ledger, base: Path) -> None:
    found = judged(ledger, twice(ledger, base))
    assert (found.decision, found.why, found.unstable) == (Decision.PASS, (), ())
    assert found.replays == 2


def test_w03_what_is_drawn_into_an_argument_is_named_and_blames_nobody(
    studio: Studio, ledger: Ledger
) -> None:
    """W03: MUTATED would be the pull request's fault in each single replay."""
    note = ", ".join(f"{name!r}: {drawn}" for name, drawn in DRAWN.items())
    agent = studio.version("drawing", DESK, (STEADY, f'args["note"] = {{{note}}}'))
    (agent / "a.txt").touch()
    told = twice(ledger, agent)
    found = judged(ledger, told)
    assert {one.path for one in found.unstable} == {f"/note/{name}" for name in DRAWN}
    assert not any(one.names_target for one in found.unstable)
    # A call that changed in chance alone is a warning, since none of this kind blocks.
    assert ([one.unstable for one in found.judged], found.decision) == ([True], Decision.PASS)
    strict = judged(ledger, told, policy=STRICT)
    assert strict.decision is Decision.INCONCLUSIVE
    assert "1 MUTATED in nothing but what comes out otherwise" in " ".join(strict.why)
    generated = Declaration(
        tool="order", identity=("vendor", "ref"), fields={"note": ("generated",)}
    )
    meant = judged(ledger, told, declared={**DECLARED, "order": generated}, policy=STRICT)
    assert (meant.decision, meant.unstable) == (Decision.PASS, ())


def test_a_relabelled_call_blocks_whatever_else_in_it_is_chance(
    studio: Studio, ledger: Ledger
) -> None:
    """The control: chance in one argument hides no change in another."""
    changed = 'args.update(note={"uuid": str(uuid.uuid4())}, vendor="ACME Corp")'
    lost = """
    else:
        args["to"] = f"bo+{uuid.uuid4().hex}"
"""
    agent = studio.version("both", DESK, (f"{STEADY}\n", f"{changed}{lost}"))
    found = judged(ledger, twice(ledger, agent))
    assert found.decision is Decision.BLOCK
    assert {(one.divergence.tool, one.unstable) for one in found.judged} == {
        ("order", False),
        ("mail", True),
    }
    assert [one.tool for one in found.unstable if one.names_target] == ["mail"]


def test_a_call_that_comes_and_goes_makes_its_run_inconclusive(
    studio: Studio, ledger: Ledger
) -> None:
    """A whole call that another replay does not make is no word of the version's."""
    leaves_out = """
    elif os.getpid() % 2:
        return {"sent": "not today"}
"""
    agent = studio.version("fickle", DESK, (f"{STEADY}\n", f"{STEADY}{leaves_out}"))
    found = judged(ledger, twice(ledger, agent))
    assert found.decision is Decision.INCONCLUSIVE
    (why,) = found.why
    assert why.startswith("run r1 is unstable: mail is asked for in step s0 in some replays")
