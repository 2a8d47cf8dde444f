"""Is the guard there? Asked of a running server, or of an agent's folder as a server loads it.

The question goes in at the front door, as a message, and only a loaded guard can answer it
(`backstop.guard.plugin.health`); no model is asked, no tool runs, nothing is recorded.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec
from google.adk.apps import App
from google.adk.runners import Runner
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.genai import types

from backstop.adapters.apiserver import ApiServer, NotAnswered
from backstop.adk.escapes import Way
from backstop.errors import BackstopError
from backstop.guard.plugin.health import Health, heard, question
from backstop.replay.escapes import findings
from backstop.replay.harness.escapes import escapes
from backstop.replay.harness.survey import Survey, is_guard
from backstop.replay.wire import EscapeSeen
from backstop.wiring.checkouts import ENTRANCES
from backstop.wiring.plugin import Plugin

_USER: Final = "backstop-doctor"


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One thing that was looked at. A note is neither good nor bad: a person should know it."""

    ok: bool
    what: str
    note: bool = False


def check_server(url: str, *, app: str | None, nonce: str) -> Iterator[Check]:
    """What is to be said of the server at `url`, of one app or all of them.

    Raises `BackstopError` (``doctor-server``).
    """
    server = ApiServer(url)
    apps = server.apps()
    if app is not None and app not in apps:
        yield Check(ok=False, what=f"{app}: the server has no such app; it has: {', '.join(apps)}")
        return
    for name in apps if app is None else [app]:
        try:
            events = server.ask(name, question(nonce))
        except NotAnswered as error:
            yield _not_loaded(name, str(error))
            continue
        yield from checks_of(name, heard(events, nonce=nonce))


def check_folder(folder: Path, *, config: Path | None, nonce: str) -> Iterator[Check]:
    """What is to be said of the agent in `folder`, or of each agent below it.

    Raises `BackstopError` (``agent-missing``) where there is none.
    """
    folders = [folder] if _is_agent(folder) else sorted(filter(_is_agent, _below(folder)))
    if not folders:
        raise BackstopError(
            f"{folder}: there is no agent in it; name the folder that holds agent.py, or the one "
            "that is given to `adk web`; a server's address begins with http://",
            slug="agent-missing",
        )
    for one in folders:
        yield from _check_agent(one.resolve(), config=config, nonce=nonce)


def _check_agent(folder: Path, *, config: Path | None, nonce: str) -> Iterator[Check]:
    name = folder.name
    try:
        app = _loaded(folder)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - a user's code raises anything
        said = " ".join(f"{type(error).__name__}: {error}".split())[:500]
        yield Check(ok=False, what=f"{name}: the agent cannot be loaded: {said}")
        return
    guard = Plugin(name="backstop.Plugin", config=config)
    # A server appends it, and it moves to the front in its first run; here it has none before
    # the question, which a plugin that rewrites messages could turn into one for the model.
    others = [one for one in app.plugins if not is_guard(one)]  # one guard serves a run
    whole = app.model_copy(update={"plugins": [guard, *others]})
    try:
        events = asyncio.run(_asked(whole, question(nonce)))
    except Exception as error:  # noqa: BLE001 - whatever stands before the guard
        yield _not_loaded(name, f"{type(error).__name__}: {error}")
        return
    yield from checks_of(name, heard(events, nonce=nonce))
    if not any(map(is_guard, app.plugins)):
        hint = "its code does not attach the guard: start it with --extra_plugins backstop.Plugin"
        yield Check(ok=True, note=True, what=f"{name}: {hint}")
    survey = Survey(root=app.root_agent, plugins=[guard], folder=folder)
    seen = msgspec.convert(escapes(survey, app), list[EscapeSeen])
    for found in findings(escape for escape in seen if not escape.quiet):
        if found.way != Way.INCLUDE_PLUGINS:  # the guard goes along there
            told = f"{found.way} in {found.where} ({found.detail or found.at})"
            yield Check(ok=True, note=True, what=f"{name}: not covered: {told}")


def _loaded(folder: Path) -> App:
    from google.adk.cli.utils.agent_loader import AgentLoader

    loaded = AgentLoader(str(folder.parent)).load_agent(folder.name)
    if isinstance(loaded, App):
        return loaded
    return App(name=folder.name, root_agent=loaded)


async def _asked(app: App, message: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    sessions = InMemorySessionService()
    session = await sessions.create_session(app_name=app.name, user_id=_USER)
    runner = Runner(app=app, session_service=sessions)
    running = runner.run_async(
        user_id=_USER, session_id=session.id, new_message=types.Content.model_validate(message)
    )
    return [event.model_dump(mode="json") async for event in running]


def checks_of(name: str, health: Health | None) -> Iterator[Check]:
    """What the guard's own words come to; None if it said none."""
    if health is None:
        yield _not_loaded(name, "somebody else answered")
        return
    yield Check(ok=True, what=f"{name}: the guard is loaded, backstop {health.backstop}")
    yield Check(
        ok=health.index == 0,
        what=f"{name}: it stands first among the plugins"
        if health.index == 0
        else f"{name}: it is plugin number {health.index + 1}: one before it may answer tools",
    )
    yield Check(
        ok=not health.why,
        what=f"{name}: it refuses every effect: {health.why}"
        if health.why
        else f"{name}: it guards agent {health.agent}, and its store answers",
    )
    if health.armed:
        tools = ", ".join(health.armed)
        yield Check(ok=True, what=f"{name}: tools that it stands before: {tools}")
    if health.missed:
        tools = ", ".join(health.missed)
        yield Check(ok=False, what=f"{name}: tools that it cannot stand before: {tools}")
    if health.observing:
        yield Check(ok=True, note=True, what=f"{name}: it only observes: nothing is refused")


def _not_loaded(name: str, why: str) -> Check:
    return Check(
        ok=False,
        what=f"{name}: the guard did not answer ({why}): effects go out unguarded; start with "
        "--extra_plugins backstop.Plugin, and read the server's log",
    )


def _below(folder: Path) -> Iterator[Path]:
    if folder.is_dir():
        yield from (one for one in folder.iterdir() if one.name[:1] not in {".", "_"})


def _is_agent(folder: Path) -> bool:
    return any((folder / entrance).is_file() for entrance in ENTRANCES)
