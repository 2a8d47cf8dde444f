"""Records every construct behind our plugin, on whatever framework runs it.

``python tests/e2e/appended.py tests.e2e.constructs.record FOLDER NAME...``: agents, configuration
and store are there; what went out is written to the file in ``CONSTRUCTS_OUT``.
"""

from __future__ import annotations

import asyncio
import importlib
import os
import sys
import threading
from collections.abc import AsyncGenerator, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

from google.adk.agents.run_config import RunConfig
from google.adk.apps import App
from google.adk.artifacts.in_memory_artifact_service import InMemoryArtifactService
from google.adk.models.google_llm import Gemini
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import Runner
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.genai import types

from backstop.wiring.plugin import Plugin
from tests.e2e.constructs.scripts import CONSTRUCTS, Answer, Construct, Message, Waiting


class _Payments(BaseHTTPRequestHandler):
    """Takes payments, and writes each of them down."""

    def do_POST(self) -> None:
        asked = self.rfile.read(int(self.headers["Content-Length"]))
        with Path(os.environ["CONSTRUCTS_OUT"]).open("ab") as out:
            out.write(b"POST " + asked + b"\n")
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(b'{"paid": true}')

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's signature
        """Be quiet."""


def _agents(node: Any, seen: set[int]) -> Iterator[Any]:
    if id(node) in seen:
        return
    seen.add(id(node))
    children = [*(getattr(node, "sub_agents", None) or ())]
    children += getattr(getattr(node, "graph", None), "nodes", None) or ()
    children += [
        inner
        for tool in getattr(node, "tools", None) or ()
        if (inner := getattr(tool, "agent", None)) is not None
    ]
    for child in children:
        yield from _agents(child, seen)
    if hasattr(node, "canonical_model"):
        yield node


def _stage(agent: Any, answers: list[Answer]) -> None:
    """Give an agent a model that answers as scripted; the class stays a real one's."""
    model = Gemini(model=agent.canonical_model.model)

    async def answer(
        request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        assert answers, f"{agent.name} asks its model once more"
        given = answers.pop(0)
        for one in given if isinstance(given, tuple) else [given]:
            yield (
                one
                if isinstance(one, LlmResponse)
                else LlmResponse(content=types.Content(role="model", parts=one))
            )

    vars(model)["generate_content_async"] = answer
    agent.model = model


async def _say(runner: Runner, message: Message, waiting: Waiting, config: RunConfig) -> None:
    content = (
        types.Content(role="user", parts=[types.Part(text=message)])
        if isinstance(message, str)
        else message(waiting)
    )
    waiting.clear()
    async for event in runner.run_async(
        user_id="u", session_id="s1", new_message=content, run_config=config
    ):
        for call in event.get_function_calls():
            if call.id in (event.long_running_tool_ids or ()):
                waiting[call.id or ""] = call.name or ""


async def _record(construct: Construct, folder: Path) -> None:
    module = importlib.import_module(f"{construct.name}.agent")
    app = getattr(module, "app", None)
    root = app.root_agent if app is not None else module.root_agent
    for agent in _agents(root, set()):
        _stage(agent, list(construct.models.get(agent.name, ())))
    plugin = Plugin(config=folder / "backstop.yaml", agent=construct.name)
    whole = App(
        name=construct.name,
        root_agent=root,
        plugins=[plugin],
        resumability_config=app.resumability_config if app is not None else None,
    )
    sessions = InMemorySessionService()
    runner = Runner(app=whole, session_service=sessions, artifact_service=InMemoryArtifactService())
    await sessions.create_session(app_name=construct.name, user_id="u", session_id="s1")
    config = (
        RunConfig.model_validate({"streaming_mode": "sse"}) if construct.streaming else RunConfig()
    )
    waiting: Waiting = {}
    for message in construct.steps:
        await _say(runner, message, waiting, config)
    await runner.close()


def main(folder: Path, *names: str) -> None:
    """Record those of these names."""
    server = HTTPServer(("127.0.0.1", 0), _Payments)
    os.environ["CONSTRUCTS_API"] = f"http://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    sys.path.insert(0, str(folder / "v1"))
    for construct in CONSTRUCTS:
        if construct.name in names:
            asyncio.run(_record(construct, folder))
    server.shutdown()


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
