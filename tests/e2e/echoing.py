"""Agents whose models answer with a digest of all they were shown, in every topology.

Whatever a step reads shows in what it gives: an input that is changed changes it, and a recorder
that missed the reading is found out.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

from google.adk.agents import BaseAgent, LlmAgent, LoopAgent, ParallelAgent, SequentialAgent
from google.adk.events import Event, EventActions
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.tools.agent_tool import AgentTool
from google.adk.tools.exit_loop_tool import exit_loop
from google.adk.tools.tool_context import ToolContext
from google.adk.workflow import Workflow
from google.genai import types

from backstop.mesh.declare import depends_on, evidence, step

STATE: Final = {"url": "x", "topic": "t", "tone": "calm", "limits": "few", "unused": "u"}


@dataclass(frozen=True, kw_only=True)
class World:
    """What a run is made from. `feed` is seen through evidence, `rate` by a declaration.

    `lookup` is part of what a tool gives, `model` the models' name, `scout` the first agent's
    instruction, `doc` what the report tool says of itself.
    """

    user: str = "go"
    state: Mapping[str, str] = field(default_factory=lambda: STATE)
    brief: str = "brief one"
    memory: str = "price one"
    feed: str = "feed one"
    rate: str = "rate one"
    lookup: str = "found one"
    model: str = "echo-1"
    scout: str = "Scan {topic}"
    doc: str = "Report it."


def changed() -> dict[str, World]:
    """The world, with one thing another in each."""
    base = World()
    found = {
        f"state:{key}": replace(base, state={**STATE, key: f"{held}, changed"})
        for key, held in STATE.items()
    }
    for name in ("user", "brief", "memory", "feed", "rate", "lookup", "model", "doc"):
        another: Any = {name: f"{getattr(base, name)} changed"}
        found[name] = replace(base, **another)
    found["scout"] = replace(base, scout="Look for {topic}")
    return found


@dataclass(frozen=True, kw_only=True)
class Mode:
    """How the agents are run: `coarse` ones ask their tools the same whatever they saw."""

    include: Literal["default", "none"] = "default"
    coarse: bool = False
    stream: bool = False


class Echo(BaseLlm):
    """Asks for the tools that its script names, then answers with a digest of what it saw."""

    model: str = "echo-1"
    script: dict[str, list[str]]
    coarse: bool = False

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        """Answer once, or in two parts and once as a whole."""
        config = llm_request.config
        who = (config.labels or {})["adk_agent_name"]
        parts = [part for content in llm_request.contents for part in content.parts or ()]
        own = sum(1 for part in parts if part.function_call)
        seen = hashlib.sha256(repr(self._seen(llm_request, parts)).encode()).hexdigest()[:10]
        asks = self.script.get(who, [])
        if asks and not own:
            said = [_asking(name, "same" if self.coarse else seen) for name in asks]
        else:
            said = [types.Part(text=f"{who}:{seen}")]
        if stream and said[0].text:
            yield _response([types.Part(text=said[0].text[:4])], partial=True)
            yield _response([types.Part(text=said[0].text[4:])], partial=True)
        yield _response(said)

    def _seen(self, request: LlmRequest, parts: list[types.Part]) -> list[Any]:
        config = request.config
        tools = [one.model_dump(mode="json", exclude_none=True) for one in config.tools or ()]  # type: ignore[union-attr]  # ours are
        shown = [
            (
                part.text,
                part.function_call and (part.function_call.name, part.function_call.args),
                part.function_response and part.function_response.response,
            )
            for part in parts
        ]
        return [self.model, config.system_instruction, tools, shown]


def _response(parts: list[types.Part], *, partial: bool | None = None) -> LlmResponse:
    return LlmResponse(content=types.Content(role="model", parts=parts), partial=partial)


def _asking(tool: str, question: str) -> types.Part:
    name, _, argument = tool.partition(":")
    args = {} if argument == "-" else {argument or "q": question}
    if name == "transfer_to_agent":
        args = {"agent_name": argument}
    return types.Part.from_function_call(name=name, args=args)


# --- tools: each reads one thing of the world ---


def tools(world: World) -> dict[str, Callable[..., Any]]:
    """The tools of this world, by name."""

    @evidence(ttl=60.0, source="feed")
    def feed() -> str:
        return world.feed

    def lookup(q: str, tool_context: ToolContext) -> dict[str, Any]:
        """Look it up."""
        url = tool_context.state["url"]
        tool_context.state["raw"] = f"{world.lookup} {url} {feed()}"
        return {"ok": True}

    async def brief(q: str, tool_context: ToolContext) -> dict[str, Any]:
        """Read the brief, and make a note of it."""
        part = await tool_context.load_artifact("brief.txt")
        assert part is not None
        note = types.Part(text=f"note of {part.text} {q}")
        return {"version": await tool_context.save_artifact("note.txt", note)}

    async def recall(q: str, tool_context: ToolContext) -> dict[str, Any]:
        """Remember, and read the note if there is one."""
        found = await tool_context.search_memory("price")
        note = await tool_context.load_artifact("note.txt")
        texts = [part.text for one in found.memories for part in one.content.parts or ()]
        return {"memories": texts, "note": None if note is None else note.text}

    def report(q: str, tool_context: ToolContext) -> dict[str, Any]:
        """Report it."""
        depends_on("rate", world.rate)
        return {"raw": tool_context.state.get("raw"), "rate": world.rate}

    report.__doc__ = world.doc
    return {one.__name__: one for one in (lookup, brief, recall, report)}


# --- topologies ---


class _Kit:
    """Makes the agents of one topology."""

    def __init__(self, world: World, mode: Mode, script: dict[str, list[str]]) -> None:
        self.world = world
        self.mode = mode
        self.tools = tools(world)
        self.echo = Echo(model=world.model, script=script, coarse=mode.coarse)

    def agent(self, name: str, instruction: str, use: str = "", **named: Any) -> LlmAgent:
        """An agent with these tools of the world, besides what is named."""
        more = named.pop("tools", [])
        return LlmAgent(
            name=name,
            model=self.echo,
            instruction=instruction,
            include_contents=self.mode.include,
            tools=[*(self.tools[tool] for tool in use.split()), *more],
            **named,
        )

    def scout(self, **named: Any) -> LlmAgent:
        """The one that begins."""
        return self.agent("scout", self.world.scout, "lookup brief", output_key="scouted", **named)

    def chief(self, instruction: str) -> LlmAgent:
        """The one that ends."""
        return self.agent("chief", instruction, "report recall", output_key="done")


_SCRIPT: Final = {"scout": ["lookup", "brief"], "chief": ["report", "recall"]}


def sequential(world: World, mode: Mode) -> Any:
    """One after another."""
    kit = _Kit(world, mode, _SCRIPT)
    middle = kit.agent("middle", "Weigh {scouted}", output_key="weighed")
    aside = kit.agent("aside", "Say something", output_key="aside")
    chief = kit.chief("End {weighed} {tone}")
    return SequentialAgent(name="desk", sub_agents=[kit.scout(), middle, aside, chief])


def parallel(world: World, mode: Mode) -> Any:
    """Two at once, of which one reads what the other does not."""
    kit = _Kit(world, mode, _SCRIPT | {"right": ["recall"]})
    both = ParallelAgent(
        name="both",
        sub_agents=[
            kit.agent("left", "Left {scouted} {limits}", output_key="l"),
            kit.agent("right", "Right {scouted}", "recall", output_key="r"),
        ],
    )
    return SequentialAgent(name="desk", sub_agents=[kit.scout(), both, kit.chief("End {l} {r}")])


def loop(world: World, mode: Mode) -> Any:
    """Round and round, until an agent's own code has seen enough."""

    class Judge(BaseAgent):
        async def _run_async_impl(self, ctx: Any) -> AsyncGenerator[Event, None]:
            rounds = ctx.session.state.get("rounds", 0) + 1
            enough = rounds > 1 or "changed" in ctx.session.state["limits"]
            yield Event(
                author=self.name,
                invocation_id=ctx.invocation_id,
                branch=ctx.branch,
                actions=EventActions(state_delta={"rounds": rounds}, escalate=enough or None),
            )

    kit = _Kit(world, mode, _SCRIPT)
    inner = kit.agent("inner", "Better {draft?} {tone}", output_key="draft")
    rounds = LoopAgent(name="rounds", sub_agents=[inner, Judge(name="judge")], max_iterations=4)
    return SequentialAgent(name="desk", sub_agents=[kit.scout(), rounds, kit.chief("End {draft}")])


def exiting(world: World, mode: Mode) -> Any:
    """Round and round, until a tool says that it is enough."""
    kit = _Kit(world, mode, _SCRIPT | {"critic": ["exit_loop:-"]})
    inner = kit.agent("inner", "Better {tone}", output_key="draft")
    critic = kit.agent("critic", "Judge {draft} {limits}", tools=[exit_loop])
    rounds = LoopAgent(name="rounds", sub_agents=[inner, critic], max_iterations=3)
    return SequentialAgent(name="desk", sub_agents=[rounds, kit.chief("End {draft}")])


def agent_tool(world: World, mode: Mode) -> Any:
    """An agent that is another one's tool, with a tool of its own."""
    kit = _Kit(world, mode, _SCRIPT | {"lead": ["child:request"], "child": ["lookup"]})
    child = kit.agent("child", "Help {limits}", "lookup", output_key="helped")
    lead = kit.agent("lead", "Lead {tone}", tools=[AgentTool(child)], output_key="led")
    return SequentialAgent(name="desk", sub_agents=[lead, kit.chief("End {led} {helped} {raw}")])


def transfer(world: World, mode: Mode) -> Any:
    """An agent that hands over to another."""
    kit = _Kit(world, mode, _SCRIPT | {"lead": ["transfer_to_agent:scout"]})
    scout = kit.scout(disallow_transfer_to_parent=True, disallow_transfer_to_peers=True)
    lead = kit.agent("lead", "Lead {tone}", sub_agents=[scout])
    return SequentialAgent(name="desk", sub_agents=[lead, kit.chief("End {raw}")])


def transfer_at_root(world: World, mode: Mode) -> Any:
    """The same, with nobody above."""
    kit = _Kit(world, mode, _SCRIPT | {"lead": ["transfer_to_agent:scout"]})
    return kit.agent("lead", "Lead {tone}", sub_agents=[kit.scout()])


def workflow(world: World, mode: Mode) -> Any:
    """A graph of functions and agents, some of whose functions say that they are steps."""
    kit = _Kit(world, mode, _SCRIPT)

    @step
    def load(url: str) -> str:
        depends_on("rate", world.rate)
        return f"loaded {url} {world.rate}"

    def merge(node_input: str, limits: str) -> str:
        return f"{node_input} within {limits}"

    middle = kit.agent("middle", "Weigh {tone}", output_key="weighed")
    return Workflow(name="graph", edges=[("START", load), (load, merge), (merge, middle)])


def custom(world: World, mode: Mode) -> Any:
    """An agent of the user's own class, which decides by itself whom it calls."""
    kit = _Kit(world, mode, _SCRIPT)
    scout, other = kit.scout(), kit.agent("other", "Instead {limits}", output_key="scouted")

    class Own(BaseAgent):
        async def _run_async_impl(self, ctx: Any) -> AsyncGenerator[Event, None]:
            chosen = other if "changed" in ctx.session.state["tone"] else scout
            async for event in chosen.run_async(ctx):
                yield event
            text = f"own {ctx.session.state['scouted']} {len(ctx.session.events)}"
            yield Event(
                author=self.name,
                invocation_id=ctx.invocation_id,
                branch=ctx.branch,
                content=types.Content(role="model", parts=[types.Part(text=text)]),
                actions=EventActions(state_delta={"own": text}),
            )

    own = Own(name="own", sub_agents=[scout, other])
    return SequentialAgent(name="desk", sub_agents=[own, kit.chief("End {own}")])


def callbacks(world: World, mode: Mode) -> Any:
    """Callbacks that read, write, rewrite and skip."""

    def before_agent(callback_context: Any) -> types.Content | None:
        if "changed" in callback_context.state["tone"]:
            return types.Content(role="model", parts=[types.Part(text="skipped")])
        callback_context.state["begun"] = callback_context.state["limits"]
        return None

    def before_model(callback_context: Any, llm_request: LlmRequest) -> None:
        text = f"by the way {callback_context.state['url']}"
        llm_request.contents.append(types.Content(role="user", parts=[types.Part(text=text)]))

    def after_tool(tool: Any, args: Any, tool_context: Any, tool_response: Any) -> dict[str, Any]:
        return {**tool_response, "after": tool_context.state["limits"]}

    def after_model(callback_context: Any, llm_response: LlmResponse) -> LlmResponse | None:
        content = llm_response.content
        if content and content.parts and content.parts[0].text and not llm_response.partial:
            content.parts[0].text += callback_context.state["unused"]
        return None

    def after_agent(callback_context: Any) -> types.Content:
        text = f"after {callback_context.state['url']} {callback_context.state.get('middled')}"
        return types.Content(role="model", parts=[types.Part(text=text)])

    kit = _Kit(world, mode, _SCRIPT | {"middle": ["report"]})
    middle = kit.agent(
        "middle",
        "Weigh {scouted}",
        "report",
        output_key="middled",
        before_agent_callback=before_agent,
        before_model_callback=before_model,
        after_tool_callback=after_tool,
        after_model_callback=after_model,
        after_agent_callback=after_agent,
    )
    return SequentialAgent(name="desk", sub_agents=[kit.scout(), middle, kit.chief("End {begun?}")])


def injected(world: World, mode: Mode) -> Any:
    """Instructions that load an artifact, and ones that code makes."""
    kit = _Kit(world, mode, {})

    def provider(context: Any) -> str:
        return f"Provide {context.state['limits']} {context.state.get('first')}"

    first = kit.agent("first", "Obey {artifact.brief.txt}", output_key="first")
    second = kit.agent("second", "", output_key="second")
    second.instruction = provider
    return SequentialAgent(name="desk", sub_agents=[first, second, kit.chief("End {second}")])


TOPOLOGIES: Final[Mapping[str, Callable[[World, Mode], Any]]] = {
    made.__name__: made
    for made in (
        sequential,
        parallel,
        loop,
        exiting,
        agent_tool,
        transfer,
        transfer_at_root,
        workflow,
        custom,
        callbacks,
        injected,
    )
}
