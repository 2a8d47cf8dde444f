"""What a model request is answered, and what follows from it (semantics.md A4, A5, D2)."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest
from google.adk.models.llm_request import LlmRequest

from backstop.adk.requests import RequestDigester
from backstop.core.events import ModelAnswered, RequestDigests
from backstop.replay.models import Drift, Trust
from tests.dsl import Scenario, scenario
from tests.unit.replay.asking import Asking, same

pytestmark = pytest.mark.filterwarnings("ignore")

TEXT = """
tool pay identity vendor
tool mail identity to
run r1
step s1
model pay
commit pay{vendor: acme} -> ok
model
advance
step s2
model mail
commit mail{to: bo} -> ok
model
advance
"""
STOPPED = TEXT.replace("advance\n", "")
"""The same, of steps that nobody saw the end of."""


def with_requests(told: Scenario | str, *names: str, v: str = "") -> Scenario:
    """The scenario with request digests, by place among the model events."""
    told = scenario(told) if isinstance(told, str) else told
    left = list(names)
    events = [
        msgspec.structs.replace(event, request=same(left.pop(0)), v=v)
        if isinstance(event, ModelAnswered) and left
        else event
        for event in told.events
    ]
    return replace(told, events=events)


def with_versions(told: Scenario | str, v: str) -> Scenario:
    """The scenario with its model rows written by a version, without digests."""
    told = scenario(told) if isinstance(told, str) else told
    events = [
        msgspec.structs.replace(event, v=v) if isinstance(event, ModelAnswered) else event
        for event in told.events
    ]
    return replace(told, events=events)


def calls(reply: object) -> list[str]:
    """The tools that a model reply calls."""
    response = msgspec.json.decode(msgspec.json.encode(reply))["response"]
    parts = response["content"]["parts"]
    return [part["function_call"]["name"] for part in parts if "function_call" in part]


def test_a4_an_answer_is_found_by_the_digest_of_its_request() -> None:
    """A4: by digest within the step, whatever the number of the request."""
    asking = Asking(with_requests(TEXT, "one", "two", "three", "four"), trust=Trust())
    asking.step("s1")
    assert calls(asking.model(ordinal=0, request=same("two"))) == []
    assert calls(asking.model(ordinal=1, request=same("one"))) == ["pay"]
    assert asking.answers.drift is Drift.SAME
    assert asking.answers.assumed_from is None


def test_a4_the_same_request_twice_gets_both_answers_in_turn() -> None:
    """A4: an answer that was served is used up."""
    asking = Asking(with_requests(TEXT, "one", "one"), trust=Trust()).step("s1")
    assert calls(asking.model(ordinal=0, request=same("one"))) == ["pay"]
    assert calls(asking.model(ordinal=1, request=same("one"))) == []


def test_a4_without_digests_the_ordinal_of_the_last_attempt_decides() -> None:
    """A4: attempt 1 crashed after asking; attempt 2 asked anew and acted."""
    asking = Asking(
        """
        tool pay identity vendor
        run r1
        step s1
        model mail
        attempt
        model pay
        commit pay{vendor: acme} -> ok
        model
        """
    ).step("s1")
    assert calls(asking.model(ordinal=0)) == ["pay"]
    asking.call("pay", vendor="acme")
    assert calls(asking.model(ordinal=1)) == []
    assert asking.model(ordinal=2).missing == "end_of_record"


def test_a4_answers_that_name_no_agent_go_to_whoever_asks_in_turn() -> None:
    """A4: an imported chat does not say who spoke; any agent of any name is answered."""
    told = scenario(STOPPED.replace("model mail", "model mail\nmodel"))
    unnamed = [
        msgspec.structs.replace(event, agent="") if isinstance(event, ModelAnswered) else event
        for event in told.events
    ]
    asking = Asking(replace(told, events=unnamed)).step("s2")
    assert calls(asking.model("front")) == ["mail"]
    assert calls(asking.model("back")) == []
    asking.call("mail", to="bo")
    assert calls(asking.model("front", ordinal=1)) == []
    assert asking.model("back", ordinal=1).missing == "end_of_record"


def test_a4_an_attempt_that_asked_nothing_leaves_the_answers_of_the_one_before() -> None:
    """A4: attempt 2 resumed after the model had answered."""
    asking = Asking(
        """
        tool pay identity vendor
        run r1
        step s1
        model pay
        attempt
        commit pay{vendor: acme} -> ok
        advance
        """
    ).step("s1")
    assert calls(asking.model(ordinal=0)) == ["pay"]


def test_a4_a_resumed_attempt_goes_on_counting() -> None:
    """A4, S1: attempt 2 began with the call, so its requests follow those of attempt 1."""
    asking = Asking(
        """
        tool pay identity vendor
        run r1
        step s1
        model pay
        attempt
        commit pay{vendor: acme} -> ok
        model mail
        advance
        """
    ).step("s1")
    assert calls(asking.model(ordinal=0)) == ["pay"]
    assert calls(asking.model(ordinal=1)) == ["mail"]


def test_a5_a_drifted_answer_is_served_and_what_follows_is_assumed() -> None:
    """A5, D2: the intents after it and the steps from there on; not those before."""
    asking = Asking(with_requests(TEXT, "one", "two", "three", "four"), trust=Trust())
    asking.step("s1")
    asking.model(ordinal=0, request=same("one"))
    asking.call("pay", vendor="acme")
    asking.step("s2")
    changed = RequestDigests(instruction="x", tools="t", contents="three", settings="y")
    assert asking.model(ordinal=0, request=changed).drift == "drifted"
    asking.call("mail", to="bo")
    assert [intent.assumed for intent in asking.intents] == [False, True]
    assert asking.answers.assumed_from == 1
    assert asking.answers.drift is Drift.DRIFTED
    assert asking.answers.drifted == {"desk": ("instruction", "settings")}


def test_f34_another_way_to_choose_tools_is_another_request() -> None:
    """F34: only the mode of the tool choice differs, and with it the settings."""
    asked = {mode: chosen(mode) for mode in ("AUTO", "ANY", "NONE")}
    assert len({digests.settings for digests in asked.values()}) == len(asked)
    told = with_requests(TEXT)
    first = next(i for i, event in enumerate(told.events) if isinstance(event, ModelAnswered))
    told.events[first] = msgspec.structs.replace(told.events[first], request=asked["AUTO"])
    for mode, drift in (("AUTO", "same"), ("ANY", "drifted"), ("NONE", "drifted")):
        asking = Asking(told, trust=Trust()).step("s1")
        reply = asking.model(ordinal=0, request=asked[mode])
        assert (reply.drift, calls(reply)) == (drift, ["pay"])
        assert asking.answers.drifted == ({} if drift == "same" else {"desk": ("settings",)})


def chosen(mode: str) -> RequestDigests:
    """Digests of a request that lets the model choose tools in this mode."""
    config = {"tool_config": {"function_calling_config": {"mode": mode}}}
    asked = LlmRequest.model_validate({"model": "gemini", "config": config})
    return RequestDigests(**RequestDigester().digest(asked)._asdict())


def test_a5_rows_without_digests_are_unknown_drift_and_assumed() -> None:
    """A5: an imported row cannot say what was asked."""
    asking = Asking(TEXT, trust=Trust()).step("s1")
    assert asking.model(ordinal=0).drift == "unknown"
    assert asking.answers.drift is Drift.UNKNOWN
    assert asking.answers.assumed_from == 0


def test_a5_a_control_run_supplies_the_digests_that_the_record_lacks() -> None:
    """A5: what the base asks where the record answers with a row is what that row answers."""
    base = Asking(TEXT, trust=Trust(unknown=True)).step("s1")
    base.model(ordinal=0, request=same("base"))
    control = base.answers.requests
    asking = Asking(TEXT, trust=Trust(control=control)).step("s1")
    assert asking.model(ordinal=0, request=same("base")).drift == "same"
    assert asking.answers.assumed_from is None
    asking = Asking(TEXT, trust=Trust(control=control)).step("s1")
    assert asking.model(ordinal=0, request=same("other")).drift == "drifted"


def test_a5_what_the_candidate_wrote_itself_needs_no_proof() -> None:
    """A5: rows of the candidate's own version are not assumed."""
    told = with_versions(TEXT, "me")
    asking = Asking(told, trust=Trust(version="me")).step("s1")
    assert asking.model(ordinal=0, request=same("other")).drift == "same"
    asking = Asking(told, trust=Trust(version="you")).step("s1")
    assert asking.model(ordinal=0, request=same("other")).drift == "unknown"


def test_a5_recorded_digests_decide_even_for_the_version_that_wrote_them() -> None:
    """A5, ADR 0009: a folder's digest says nothing of the framework and of shared code."""
    asking = Asking(with_requests(TEXT, "one", v="me"), trust=Trust(version="me")).step("s1")
    assert asking.model(ordinal=0, request=same("other")).drift == "drifted"


def test_a5_a_control_run_vouches_beside_the_recorded_digests() -> None:
    """A5: base and candidate on a newer framework ask alike; that is no drift of the change."""
    told = with_requests(TEXT, "one", v="old")
    base = Asking(told, trust=Trust(unknown=True)).step("s1")
    base.model(ordinal=0, request=same("newer"))
    trust = Trust(control=base.answers.requests)
    asking = Asking(told, trust=trust).step("s1")
    assert asking.model(ordinal=0, request=same("newer")).drift == "same"
    asking = Asking(told, trust=trust).step("s1")
    assert asking.model(ordinal=0, request=same("third")).drift == "drifted"


def test_a_request_past_the_last_recorded_answer_ends_the_step() -> None:
    """The end of the record: neither fault nor assumed, once all recorded calls were asked."""
    asking = Asking(STOPPED).step("s1")
    asking.model(ordinal=0)
    asking.call("pay", vendor="acme")
    asking.model(ordinal=1)
    assert asking.model(ordinal=2).missing == "end_of_record"
    assert asking.answers.failure is None
    assert asking.answers.assumed_from is None


def test_an_agent_that_had_said_its_last_word_is_no_end_of_the_record() -> None:
    """A loop that goes round once more asks what nobody answered: that is no pass."""
    asking = Asking(TEXT).step("s1")
    asking.model(ordinal=0)
    asking.call("pay", vendor="acme")
    asking.model(ordinal=1)
    assert asking.model(ordinal=2).missing == "none"
    assert asking.answers.failure is not None


def test_a_whole_step_whose_last_answer_still_called_a_tool_ends_there() -> None:
    """A long-running call or a person may have kept the model from being asked again."""
    asking = Asking(TEXT.replace("-> ok\nmodel\nadvance", "-> ok\nadvance")).step("s1")
    asking.model(ordinal=0)
    asking.call("pay", vendor="acme")
    assert asking.model(ordinal=1).missing == "end_of_record"


def test_a_request_past_the_record_while_a_recorded_call_is_owed_is_none() -> None:
    """Anything else is none: the run is not replayable, and the reason names step and agent."""
    asking = Asking(TEXT).step("s1")
    asking.model(ordinal=0)
    asking.model(ordinal=1)
    assert asking.model(ordinal=2).missing == "none"
    assert asking.answers.failure is not None
    assert asking.answers.failure.why == (
        "step s1: agent desk asks its model for the 3rd time, and the record has no answer to that"
    )


def test_an_agent_that_the_record_never_heard_of_is_told_whose_answers_there_are() -> None:
    """A renamed agent finds no answer: the reason names those that the record knows."""
    asking = Asking(TEXT).step("s1")
    assert asking.model(agent="help_desk").missing == "none"
    assert asking.answers.failure is not None
    assert asking.answers.failure.why == (
        "step s1: agent help_desk asks its model for the 1st time, and the record has no answer "
        "to that: all its answers are to desk; was an agent renamed?"
    )


def test_a_relabelled_call_counts_as_asked_for_at_the_end_of_the_record() -> None:
    """The end of the record holds for a candidate that only relabels, too."""
    asking = Asking(STOPPED).step("s1")
    asking.model(ordinal=0)
    asking.call("pay", vendor="ACME")
    asking.model(ordinal=1)
    assert asking.model(ordinal=2).missing == "end_of_record"


def test_an_agent_that_a_whole_step_never_asked_is_no_end_of_the_record() -> None:
    """A new agent at the end of a step that was done would do what nobody knows."""
    asking = Asking(TEXT).step("s1")
    asking.model(ordinal=0)
    asking.call("pay", vendor="acme")
    asking.model(ordinal=1)
    assert asking.model(agent="reviewer").missing == "none"
