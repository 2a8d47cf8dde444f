"""The session that a step of an open run is handed (semantics.md S2)."""

from __future__ import annotations

import msgspec

from backstop.core.events import ModelAnswered
from backstop.core.runs import recorded_runs
from backstop.replay.handover import session_before
from tests.dsl import scenario

TEXT = """
tool pay identity vendor
run r1
step s1
model pay
commit pay{vendor: acme} -> {ok: true}
model
advance
step s2
"""


def test_s2_words_of_nobody_were_said_by_the_candidate_itself() -> None:
    """S2: an imported chat names no agent; another agent's words would be told otherwise."""
    events = scenario(TEXT).events
    unnamed = [
        msgspec.structs.replace(event, agent="") if isinstance(event, ModelAnswered) else event
        for event in events
    ]
    for told, author in ((events, "desk"), (unnamed, "clerk")):
        run = recorded_runs(told)[0]["r1"]
        session = session_before(run, run.steps[1], speaker="clerk")
        authors = {event["author"] for event in session if event["author"] != "user"}
        assert authors == {author}
