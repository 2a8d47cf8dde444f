"""Which code may look at a session's events: read from its source, cautiously."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from backstop.replay.harness.history import readers

ROOT = Path(__file__).parents[3]


def told(folder: Path, source: str, app: object = None) -> list[str]:
    (folder / "agent.py").write_text(source)
    return readers(folder, app, before=frozenset(sys.modules))


@pytest.mark.parametrize(
    "source",
    [
        "def f(ctx):\n    return len(ctx.session.events)\n",
        "def f(ctx):\n    return getattr(ctx.session, name)\n",
        "def f(ctx):\n    return look_at(ctx.session)\n",
        "async def f(ctx):\n    return await ctx.session_service.get_session()\n",
        "def f(ctx):\n    return attrgetter('session.events')(ctx)\n",
        "def f(ctx):\n    return getattr(ctx, 'session')\n",
        "async def f(ctx):\n    await ctx.add_session_to_memory()\n",
        "def f(ctx):\n    return ctx._invocation_context._get_events()\n",
    ],
)
def test_whatever_may_look_at_events_is_named_by_its_place(tmp_path: Path, source: str) -> None:
    line = source.count("\n")
    assert told(tmp_path, source) == [f"agent.py:{line}"]


@pytest.mark.parametrize(
    "source",
    [
        "def f(ctx):\n    return ctx.state['events_seen'], ctx.session.state, ctx.session.id\n",
        "def f(ctx):\n    '''What the session holds, and its events.'''\n",
        "events = []\n",
    ],
)
def test_code_that_looks_at_state_only_is_not_named(tmp_path: Path, source: str) -> None:
    assert told(tmp_path, source) == []


def test_a_file_that_cannot_be_read_counts_as_a_reader(tmp_path: Path) -> None:
    (tmp_path / "later.py").write_text("def (:\n")
    assert told(tmp_path, "x = 1\n") == ["later.py:1"]


def test_a_summary_of_the_session_is_made_from_its_events(tmp_path: Path) -> None:
    app = SimpleNamespace(events_compaction_config=object())
    assert told(tmp_path, "x = 1\n", app) == ["the app's events_compaction_config"]


@pytest.mark.parametrize("agent", ["vendor_onboarding/v1", "vendor_onboarding/v3", "airline/desk"])
def test_the_examples_look_at_state_only(agent: str) -> None:
    folder = (ROOT / "examples" / agent).resolve()
    assert readers(folder, None, before=frozenset(sys.modules)) == []


def test_a_module_from_elsewhere_counts_if_it_came_along_and_knows_the_framework(
    tmp_path: Path,
) -> None:
    before = frozenset(sys.modules)
    for name, first in (("knows", "from google.adk.apps import App\n"), ("does_not", "")):
        file = tmp_path / f"{name}.py"
        file.write_text(f"{first}def f(ctx):\n    return ctx.session.events\n")
        spec = importlib.util.spec_from_file_location(f"elsewhere_{name}", file)
        assert spec is not None
        assert spec.loader is not None
        module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    try:
        found = readers((ROOT / "examples/airline/desk").resolve(), None, before=before)
    finally:
        del sys.modules["elsewhere_knows"], sys.modules["elsewhere_does_not"]
    assert found == [f"{tmp_path / 'knows.py'}:3"]
