"""Records six weeks of vendor onboarding into a ledger, without waiting for them.

    python -m examples.vendor_onboarding.record [--out FILE]

The real ADK runner runs version 1 of the agent behind the guard: claims, settlements,
redeliveries, crashes. What is made up is the world around it: a clock that jumps from tick
to tick, scripted language models (there is no key here), and the incidents in `story.py`.
The same bytes come out each time.
"""

from __future__ import annotations

import argparse
import asyncio
import functools
import logging
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, TypeAlias

import msgspec
from google.adk.agents import LlmAgent
from google.adk.models.google_llm import Gemini

from backstop.adapters.content import version_of
from backstop.adapters.files import write_atomic
from backstop.adk.code import tool_code
from backstop.config import load
from backstop.core.canon import CANON_VERSION
from backstop.core.declaration import Declaration, Namespace
from backstop.core.events import FORMAT, Event, Header
from backstop.core.sealing import seal_lines
from backstop.errors import BackstopError
from backstop.guard.journal import Journal
from examples.vendor_onboarding import scripted
from examples.vendor_onboarding.v1 import agent
from examples.vendor_onboarding.world import Opened, World, in_memory

AGENT: Final = "vendor-onboarding"
HERE: Final = Path(__file__).parent
ROOT: Final = HERE.parent.parent
TOOLS: Final = (agent.look_up, agent.mail, agent.order, agent.remind, agent.approve)
LEDGER: Final = ROOT / "ledgers" / "vendor-onboarding.jsonl"


def declared() -> dict[str, Declaration]:
    """What `backstop.yaml` says about the tools, completed by the schemas of their parameters."""
    said = load(ROOT / "backstop.yaml").agent(AGENT).declarations
    return {
        tool.name: msgspec.structs.replace(
            said.get(tool.name) or Declaration(tool=tool.name),
            schema=dict(tool._get_declaration().parameters_json_schema),  # noqa: SLF001 - no public way to it
        )
        for tool in TOOLS
    }


def header(declarations: Mapping[str, Declaration], version: str) -> Header:
    """The ledger's first line."""
    return Header(
        format=FORMAT,
        agent=AGENT,
        canon=CANON_VERSION,
        guarded=True,
        tools={name: known.digest for name, known in sorted(declarations.items())},
        code={tool.name: tool_code(tool) for tool in sorted(TOOLS, key=lambda tool: tool.name)},
        declarations={known.digest: known for _, known in sorted(declarations.items())},
        versions={version: "v1"},
    )


Service: TypeAlias = Callable[[str, Mapping[str, Any], Callable[[], Any]], Awaitable[Any]]
"""What stands behind a tool: given its name, its arguments, and how its body answers."""


@contextmanager
def staged(service: Service) -> Iterator[None]:
    """While the agent runs: scripted models for its agents, `service` behind its tools."""
    if find_spec("a2a") is None:
        # The framework tries to import this at every node that it runs, and fails each time.
        sys.modules.setdefault("google.adk.agents.remote_a2a_agent", None)  # type: ignore[arg-type]
    bodies = {tool: tool.func for tool in TOOLS}
    readers = [node for node in agent.onboarding.graph.nodes if isinstance(node, LlmAgent)]
    for llm in readers:
        # The class stays, since it decides what a request looks like; only the asking is replaced.
        llm.model = Gemini(model=agent.MODEL)
        vars(llm.model)["generate_content_async"] = scripted.answer
    for tool, body in bodies.items():
        tool.func = _served(body, service)
    try:
        yield
    finally:
        for tool, body in bodies.items():
            tool.func = body
        for llm in readers:
            llm.model = agent.MODEL


def _served(body: Callable[..., Any], service: Service) -> Callable[..., Any]:
    @functools.wraps(body)
    async def served(**arguments: Any) -> Any:
        return await service(body.__name__, arguments, lambda: body(**arguments))

    return served


def record(store: Opened = in_memory) -> tuple[Header, list[Event]]:
    """The story, told by the guard into `store`: the ledger's header and its events in order."""
    declarations = declared()
    version = version_of(HERE / "v1")
    opening = header(declarations, version)
    journal = functools.partial(
        Journal, namespace=Namespace(agent=AGENT), declarations=declarations, version=version
    )
    world = World(app=agent.app, journal=journal, store=store)
    with staged(lambda tool, _, answer: world.service(tool, answer)):
        asyncio.run(world.live())
    return opening, list(world.store.read())


def main() -> int:
    """Write the ledger; say how many events it holds."""
    parser = argparse.ArgumentParser(description="Record the vendor-onboarding ledger.")
    parser.add_argument("--out", type=Path, default=LEDGER, help="the ledger file to write")
    out = parser.parse_args().out
    # The framework reports each incident of the story with a traceback; they are no news here.
    logging.getLogger("google_adk").setLevel(logging.CRITICAL)
    try:
        first, events = record()
        write_atomic(out, seal_lines(first, events))
    except BackstopError as error:
        print(f"error[{error.slug}]: {error}", file=sys.stderr)
        return error.exit_code
    # A committed ledger is the same on every machine, and so is what is said of it.
    shown = out.relative_to(Path.cwd()) if out.is_relative_to(Path.cwd()) else out
    print(f"{shown}: {len(events)} events")
    return 0


if __name__ == "__main__":
    sys.exit(main())
