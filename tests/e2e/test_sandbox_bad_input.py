"""Candidates that do not load, do not behave or do not stop: one clear word each, no traceback."""

from __future__ import annotations

import os
import sys
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest

from backstop.adapters.bounds import Limits
from backstop.adapters.process import Conversation, ProcessSandbox
from backstop.errors import SandboxError, WireError
from backstop.replay.bundle import MODULE, write_bundle
from tests.e2e.conversation import AGENTS, Driver, Heard, call, response, text

MODELS = [response(call("pay", amount=1)), response(text("done"))]
IN_TIME = Limits(silence_s=60.0)
SHORT_LINES = Limits(line=100_000)


def rough(way: str, *, runs: int = 1, limits: Limits = IN_TIME) -> Heard:
    return Driver(
        agent=AGENTS / "rough",
        models=MODELS,
        runs=runs,
        limits=limits,
        environment={"ROUGH": way},
    ).run()


@pytest.mark.parametrize(
    ("way", "slug", "said", "where"),
    [
        ("raises on import", "agent-import", "no such thing as a second line", "agent.py:12"),
        ("leaves on import", "agent-import", "sys.exit(7)", "rough"),
        ("exits on import", "agent-exited", "left with status 9 while it was imported", "rough"),
        ("has no root", "agent-no-root", "root_agent", "rough"),
    ],
)
def test_an_agent_that_does_not_load_is_one_fault(
    way: str, slug: str, said: str, where: str
) -> None:
    heard = rough(way)
    assert heard.ready is None
    [fault] = heard.faults
    assert fault.slug == slug
    assert said in fault.detail
    assert "\n" not in fault.detail
    assert fault.where.endswith(where)


def test_an_agent_folder_that_is_not_there_is_one_fault(tmp_path: Path) -> None:
    heard = Driver(agent=tmp_path / "nowhere").run()
    assert [fault.slug for fault in heard.faults] == ["agent-missing"]


def test_a_folder_without_an_agent_has_no_root(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    heard = Driver(agent=tmp_path / "empty").run()
    assert [fault.slug for fault in heard.faults] == ["agent-no-root"]


@pytest.mark.parametrize("name", ["v1.2-rc", "email"])
def test_a_folder_whose_name_is_no_python_name_or_a_modules_loads(
    name: str, tmp_path: Path
) -> None:
    (tmp_path / name).mkdir()
    source = (AGENTS / "rough" / "agent.py").read_text(encoding="utf-8")
    (tmp_path / name / "agent.py").write_text(source, encoding="utf-8")
    heard = Driver(agent=tmp_path / name, models=MODELS).run()
    assert heard.asked == [("pay", {"amount": 1})]


@pytest.mark.parametrize("way", ["hangs on import", "hangs in a callback", "sleeps for ever"])
def test_an_agent_that_hangs_is_ended(way: str) -> None:
    with pytest.raises(SandboxError, match="said nothing for 4 s") as caught:
        rough(way, limits=Limits(silence_s=4.0))
    assert caught.value.slug == "agent-hangs"
    assert str(caught.value).startswith(f"{AGENTS / 'rough'}: ")
    assert "raise sandbox.wall" in str(caught.value)


def test_an_agent_out_of_time_is_ended() -> None:
    with pytest.raises(SandboxError, match="its whole time") as caught:
        rough("hangs on import", limits=Limits(silence_s=60, wall_s=4.0))
    assert caught.value.slug == "agent-hangs"


@pytest.mark.parametrize(
    ("way", "said"),
    [
        ("raises in a callback", "ValueError: the callback is broken at agent.py:"),
        ("recurses", "RecursionError: "),
        ("eats memory", "MemoryError"),
    ],
)
def test_an_agent_that_raises_ends_its_step_as_a_fault(way: str, said: str) -> None:
    [step] = rough(way).steps
    assert step.outcome == "fault"
    assert said in step.error
    assert "\n" not in step.error


@pytest.mark.parametrize(
    ("way", "said"),
    [
        ("exits in a callback", "left with status 5 in run run-0"),
        ("crashes", "killed by signal 6 in run run-0"),
        ("leaves in a callback", "run run-0 broke: SystemExit: enough"),
    ],
)
def test_a_run_that_takes_its_process_down_leaves_the_next_one_alone(way: str, said: str) -> None:
    heard = rough(way, runs=2)
    assert [run.run for run in heard.runs] == ["run-0", "run-1"]
    assert [run.digest for run in heard.runs] == ["", ""]
    assert [fault.slug for fault in heard.faults] == ["agent-exited"] * 2
    assert said in heard.faults[0].detail


@pytest.mark.parametrize("way", ["prints on import", "prints"])
def test_what_the_candidate_prints_never_reaches_the_wire(way: str) -> None:
    heard = rough(way)
    assert heard.faults == []
    assert heard.asked == [("pay", {"amount": 1})]
    assert heard.steps[0].outcome == "done"
    assert len(heard.noise) <= Limits().noise


def test_there_is_nothing_to_read_on_standard_input() -> None:
    assert rough("reads stdin").steps[0].state["stdin"] == ""


def test_arguments_without_a_json_form_are_asked_for_as_refused() -> None:
    [intent] = rough("has no json").intents
    assert intent.refused.startswith("opaque-value: ")


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("print('x' * 300_000, end='')", "more than 100000 bytes"),
        ("print('{\"t\":', end='')", "in the middle of a line"),
    ],
)
def test_a_harness_that_breaks_the_framing_is_refused(
    script: str, said: str, tmp_path: Path
) -> None:
    with talk(script, tmp_path) as conversation, pytest.raises(WireError, match=said):
        drain(conversation)


def test_a_line_without_end_is_refused_before_it_fills_our_memory(tmp_path: Path) -> None:
    script = "import os\nwhile True: os.write(1, b'x' * (1 << 20))"
    tracemalloc.start()
    try:
        with (
            talk(script, tmp_path, limits=Limits()) as conversation,
            pytest.raises(WireError, match="more than 16777216 bytes"),
        ):
            drain(conversation)
        assert tracemalloc.get_traced_memory()[1] < 3 * Limits().line
    finally:
        tracemalloc.stop()


def test_a_harness_that_ends_early_has_said_all_it_had_to_say(tmp_path: Path) -> None:
    with talk("print('{}')", tmp_path) as conversation:
        assert conversation.receive() == b"{}"
        assert conversation.receive() is None
        with pytest.raises(SandboxError, match="is gone"):
            flood(conversation)


def test_an_interpreter_that_is_not_there_is_a_clear_error(tmp_path: Path) -> None:
    sandbox = ProcessSandbox(bundle=write_bundle, module=MODULE, python=str(tmp_path / "no-python"))
    with pytest.raises(SandboxError, match="cannot start"):
        sandbox.start(AGENTS / "orders")


def test_an_interpreter_is_named_by_its_path_from_here() -> None:
    here = os.path.relpath(sys.executable)
    sandbox = ProcessSandbox(bundle=write_bundle, module=MODULE, python=here, limits=IN_TIME)
    with sandbox.start(AGENTS / "orders") as conversation:
        assert b'"t":"ready"' in (conversation.receive() or b"").replace(b" ", b"")


@pytest.mark.usefixtures("secret")
def test_nothing_of_ours_is_in_the_candidates_environment(tmp_path: Path) -> None:
    script = "import os, json; print(json.dumps(sorted(os.environ)))"
    with talk(script, tmp_path) as conversation:
        line = conversation.receive()
    assert line is not None
    assert b"GOOGLE_API_KEY" not in line
    assert b"BACKSTOP" not in line


def test_the_scratch_folder_is_gone_afterwards(tmp_path: Path) -> None:
    with talk("import os; print(os.getcwd())", tmp_path) as conversation:
        line = conversation.receive()
        assert line is not None
        scratch = Path(line.decode())
        assert scratch.is_dir()
    assert not scratch.exists()


@pytest.fixture
def secret() -> Iterator[None]:
    """A variable that a candidate must not see."""
    os.environ["GOOGLE_API_KEY"] = "not for you"
    yield
    del os.environ["GOOGLE_API_KEY"]


def drain(conversation: Conversation) -> None:
    while conversation.receive() is not None:
        pass


def flood(conversation: Conversation) -> None:
    while True:
        conversation.send(b"{}\n" * 1000)


def talk(script: str, folder: Path, *, limits: Limits = SHORT_LINES) -> Conversation:
    """A conversation with a program of the test's own in place of the harness."""

    def write(bundle: Path) -> None:
        bundle.mkdir(parents=True)
        (bundle / "talker.py").write_text(script, encoding="utf-8")

    sandbox = ProcessSandbox(bundle=write, module="talker", limits=limits)
    return sandbox.start(folder)
