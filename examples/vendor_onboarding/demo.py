"""Shows that no side effect goes out twice, and none is skipped, whatever becomes of workers.

    python -m examples.vendor_onboarding.demo [--small] [--unguarded] [--store sqlite:///FILE]

Six weeks of vendor onboarding are worked off in a minute: version 1 of the agent on the real
framework, three worker processes, the emulators of Firestore and Pub/Sub. Every tick is
published three times, so that three workers have it at once. Two workers are killed in the
middle of an effect, and a person resolves what that leaves in doubt. At the end the ledger is
held against what the tools really did. Exit code 1 if that is not as it should be.

`--unguarded` leaves the guard out, to show what it is there for.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from backstop.adapters.content import version_of
from backstop.adapters.emulators import firestore_emulator, pubsub_emulator
from backstop.adapters.files import write_atomic
from backstop.adapters.pubsub import Outbox, Place, prepare
from backstop.core.events import EffectCommitted, EffectResolved, Header, RunClosed
from backstop.core.ledgerverify import verify
from backstop.core.sealing import seal_lines
from backstop.errors import BackstopError
from backstop.guard.workers.ticks import course
from backstop.ports import Store
from backstop.wiring.stores import open_store
from examples.vendor_onboarding.demo_cast import Cast, Died, working
from examples.vendor_onboarding.demo_play import Plan, Play, Show, Stage, run_of
from examples.vendor_onboarding.demo_truth import Deed, Line, Truth, mails, wanted
from examples.vendor_onboarding.demo_worker import SUBSCRIPTION, plan_name
from examples.vendor_onboarding.record import AGENT, HERE, ROOT, declared, header
from examples.vendor_onboarding.v1.agent import LAST_TICK

PROJECT: Final = "backstop-demo"
TOPIC: Final = "agent-tick"
UNGUARDED: Final = ", with no guard before the tools"
LEDGER: Final = ROOT / "out" / "demo-ledger.jsonl"

_WELCOME: Final = Deed("send_mail", "einkauf@mueller-soehne.example: Welcome")
_ORDER: Final = Deed("create_purchase_order", "PO-mueller-5")
_REMINDER: Final = Deed("schedule_reminder", "Documents of Łódzka Spółka Przędzalnicza")

# Those of the story's vendors whose orders need nobody's approval; the last came later.
FULL: Final = Plan(
    ticks={"mueller": 22, "lodz": 22, "caetano": 22, "boreal": 11},
    crashes=((_ORDER, "after"), (_REMINDER, "before")),
)
SMALL: Final = Plan(
    ticks={"mueller": 2, "lodz": 3},
    crashes=((_WELCOME, "after"), (_REMINDER, "before")),
    brief=True,
)


def main() -> int:
    """Play it, and say how it ended: 0 if all is as it should be."""
    parser = argparse.ArgumentParser(description="Vendor onboarding, with workers that are killed.")
    parser.add_argument("--small", action="store_true", help="two vendors and five ticks only")
    parser.add_argument("--unguarded", action="store_true", help="without the guard: goes wrong")
    parser.add_argument("--store", help="another store than Firestore's emulator: sqlite:///FILE")
    parser.add_argument("--out", type=Path, default=LEDGER, help="where the ledger is written to")
    said = parser.parse_args()
    plan = SMALL if said.small else FULL
    try:
        with tempfile.TemporaryDirectory(prefix="backstop-demo-") as folder:
            return played(plan, said, Path(folder))
    except KeyboardInterrupt:
        return 130  # as a shell has it
    except (BackstopError, Died) as error:
        slug = getattr(error, "slug", "demo")
        print(f"error[{slug}]: {error}", file=sys.stderr)
        return 2


def played(plan: Plan, said: argparse.Namespace, world: Path) -> int:
    """The play from its first line to its last."""
    show, stage = Show(), Stage(plan)
    ticks = sum(plan.ticks.values())
    show.say(
        f"Vendor onboarding: {len(plan.ticks)} runs, {ticks} ticks, each published {plan.copies} "
        f"times to {plan.workers} workers{UNGUARDED * said.unguarded}"
    )
    with ExitStack() as running:
        url = running.enter_context(store_at(said.store))
        messages = running.enter_context(pubsub_emulator())
        show.say(f"store    {url}")
        place = Place(project=PROJECT, emulator=messages)
        prepare(place, topic=TOPIC, subscription=SUBSCRIPTION, first_pause_s=0.1, deadline_s=10)
        (world / "crashes").mkdir()
        for what, when in plan.crashes:
            (world / "crashes" / plan_name(what, when)).touch()
        opening = header(declared(), version_of(HERE / "v1"))
        store = open_store(url, header=opening)
        outbox = Outbox(place, TOPIC)
        play = Play(stage=stage, store=store, outbox=outbox, world=world, show=show)
        arguments = ["--store", url, "--project", PROJECT, "--messages", messages]
        arguments += ["--world", str(world), *["--unguarded"] * said.unguarded]
        cast = Cast(arguments, stage.hear)
        ended = asyncio.run(at_work(play, cast, plan))
        outbox.close()
        findings = [] if ended else [f"not over after {plan.within_s:.0f} s"]
        lines = lines_of(store, world, plan)
        findings += [word for line in lines for word in line.findings()]
        findings += told(store, opening, lines, said.out)
    summary(show, stage, cast, lines)
    for word in findings:
        show.say(f"wrong    {word}")
    if not findings:
        show.say("No mail went twice, nothing was skipped; each cursor equals its effects.")
    return 1 if findings else 0


async def at_work(play: Play, cast: Cast, plan: Plan) -> bool:
    """Play it with workers."""
    async with working(cast, plan.workers):
        return await play.go(cast)


@contextmanager
def store_at(url: str | None) -> Iterator[str]:
    """The store's URL: the one that is given, or that of a Firestore emulator."""
    if url is not None:
        yield url
        return
    with firestore_emulator() as host:
        # Google's clients know no other way to be told, and the workers inherit it.
        os.environ["FIRESTORE_EMULATOR_HOST"] = host
        try:
            yield f"firestore://{PROJECT}/(default)/backstop"
        finally:
            del os.environ["FIRESTORE_EMULATOR_HOST"]


def lines_of(store: Store, world: Path, plan: Plan) -> list[Line]:
    """What the ledger, and what the world says of each run."""
    happened = Truth(world / "truth.jsonl").read()
    lines = []
    for vendor, ticks in plan.ticks.items():
        events = list(store.read(run_of(vendor)))
        its = wanted(vendor, LAST_TICK + 1)
        committed = [
            event
            for event in events
            if isinstance(event, EffectCommitted)
            or (isinstance(event, EffectResolved) and event.to == "committed")
        ]
        lines.append(
            Line(
                run=run_of(vendor),
                ticks=ticks,
                cursor=course(events).cursor,
                committed=len({event.key for event in committed}),
                happened=Counter({one: n for one, n in happened.items() if one in its}),
                wanted=frozenset(wanted(vendor, ticks)),
            )
        )
    return lines


def told(store: Store, opening: Header, lines: list[Line], out: Path) -> list[str]:
    """Close the runs that are through, and verify what the ledger says; what is wrong with it."""
    for line in lines:
        if line.cursor > LAST_TICK:
            store.append(RunClosed(run=line.run, at="", status="complete"))
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(out, seal_lines(opening, list(store.read())))
        with out.open("rb") as sealed:
            verify(sealed, name=out.name, expect_agent=AGENT)
    except BackstopError as error:
        return [f"the ledger: {error}"]
    return []


def summary(show: Show, stage: Stage, cast: Cast, lines: list[Line]) -> None:
    """The figures."""
    show.say("")
    show.say(f"{'run':<16}{'ticks':>7}{'cursor':>8}{'on record':>11}{'happened':>10}{'twice':>7}")
    for line in lines:
        twice = sum(n > 1 for n in line.happened.values())
        show.say(
            f"{line.run:<16}{line.ticks:>7}{line.cursor:>8}{line.committed:>11}"
            f"{line.happened.total():>10}{twice:>7}"
        )
    sent = mails(lines)
    show.say("")
    show.say(
        f"deliveries {stage.handled}, of them given back {stage.given_back}; "
        f"workers killed {cast.killed}"
    )
    show.say(f"mails sent {sent.total()}, twice {sum(n > 1 for n in sent.values())}")


if __name__ == "__main__":
    sys.exit(main())
