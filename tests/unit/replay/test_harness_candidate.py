"""What a candidate is loaded as, and the errors that a recorded failure is raised as."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from backstop.replay.harness.calls import recorded_error
from backstop.replay.harness.candidate import Unusable, load, place, said
from backstop.replay.harness.levers import QuietTelemetry, quiet_telemetry

pytestmark = pytest.mark.filterwarnings("ignore")
ROOT = Path(__file__).parents[3]
AGENTS = ROOT / "tests/agents"


@pytest.mark.parametrize("version", ["2.0.0", "2.10.3"])
def test_a_workflow_on_a_framework_too_old_for_it_is_refused(tmp_path: Path, version: str) -> None:
    with pytest.raises(Unusable, match=r"2\.11 or later") as caught:
        load(AGENTS / "workshop", start=Path.cwd(), links=tmp_path, adk=version)
    assert caught.value.slug == "agent-adk-too-old"


@pytest.mark.parametrize(
    ("agent", "version"), [("workshop", "2.11.0"), ("workshop", "3.0.0"), ("orders", "2.10.0")]
)
def test_any_other_pair_is_loaded(tmp_path: Path, agent: str, version: str) -> None:
    loaded = load(AGENTS / agent, start=Path.cwd(), links=tmp_path, adk=version)
    assert loaded.name == agent
    assert loaded.root.name == agent


def test_a_framework_too_old_to_be_replayed_is_refused_before_anything_needs_it() -> None:
    code = (
        "import google.adk.version\n"
        "google.adk.version.__version__ = '1.39.1'\n"
        "from backstop.replay.harness.candidate import Unusable, framework_version\n"
        "try:\n    framework_version()\nexcept Unusable as error:\n    print(error.slug, error)\n"
    )
    said = printed_by(code)
    assert said.startswith("agent-adk-too-old google-adk 1.39.1 in ")
    assert "2.11 and later are replayed" in said
    control = code.replace("1.39.1", "2.10.0") + "print(framework_version())\n"
    assert printed_by(control) == "2.10.0\n"


class Own(Exception):
    """A user's own exception, which wants two arguments."""

    def __init__(self, one: str, two: str) -> None:
        super().__init__(one, two)


def test_a_recorded_error_is_of_the_class_that_handlers_know() -> None:
    assert type(recorded_error("ValueError", "no")) is ValueError
    assert type(recorded_error("Own", "no")) is Own
    assert str(recorded_error("Own", "no")) == "no"
    unknown = recorded_error("NeverHeardOf", "no")
    assert (type(unknown).__name__, str(unknown)) == ("NeverHeardOf", "no")


@pytest.mark.parametrize("name", ["KeyboardInterrupt", "SystemExit", "CancelledError"])
def test_a_recorded_error_never_ends_the_harness(name: str) -> None:
    assert isinstance(recorded_error(name, "no"), Exception)


class Silent(Exception):
    """Raises even when it is printed."""

    def __str__(self) -> str:
        raise RuntimeError


def test_an_exception_is_told_in_one_line() -> None:
    assert said(ValueError("two\nlines")) == "ValueError: two lines"
    assert said(Silent()) == "Silent:"
    assert place(ValueError(), Path("/nowhere")) == "/nowhere"


def test_quiet_telemetry_is_for_versions_that_it_was_tried_on() -> None:
    assert quiet_telemetry("1.0.0", lambda: None) is None


def test_quiet_telemetry_can_be_taken_back() -> None:
    from google.adk.telemetry import _instrumentation, tracing

    before = (_instrumentation.stream_in_scope, vars(tracing).copy())
    quiet = QuietTelemetry()
    quiet.on()
    assert _instrumentation.stream_in_scope is not before[0]
    quiet.off()
    assert (_instrumentation.stream_in_scope, vars(tracing)) == before


def clock_after(prepared: str) -> str:
    """What `clock()` comes to in an interpreter of its own."""
    code = (
        f"import sys\n{prepared}\n"
        "from backstop.replay.harness.candidate import Unusable, clock\n"
        "try:\n    clock()\nexcept Unusable as error:\n    print(error.slug, error)\n"
        "print('pytest' in sys.modules)\n"
    )
    return printed_by(code)


def printed_by(code: str) -> str:
    """What code prints in an interpreter of its own."""
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, cwd=ROOT
    )
    return done.stdout


def test_a_clock_for_another_interpreter_says_what_to_install() -> None:
    said = clock_after("sys.modules['_time_machine'] = None")
    assert said.startswith("clock-missing time-machine cannot be imported by Python ")
    assert "install it there" in said


def test_the_clock_is_imported_without_what_its_tests_would_need() -> None:
    assert clock_after("") == "False\n"
