# ruff: noqa: ANN401 - agents and tools are the framework's
"""What stands behind steps: prompts, models, tools, code, by the digests of today.

A checkpoint names them as inputs; `definitions_of` tells what they are now, for the pins of a
`World`: a code or rule that is not pinned is missing there, and its steps are blocked.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from backstop.adk.code import code_digest, tool_code
from backstop.adk.code import spelled as setup
from backstop.core.canon import digest
from backstop.core.checkpoint import Dep, DepKind
from backstop.mesh.spelling import spelled

_CALLBACKS: Final = (
    "instruction",
    "global_instruction",
    "before_agent_callback",
    "after_agent_callback",
    "before_model_callback",
    "after_model_callback",
    "before_tool_callback",
    "after_tool_callback",
    "on_model_error_callback",
    "on_tool_error_callback",
)

_NO_SETUP: Final = frozenset(
    {
        # Told by names of their own.
        "name",
        "parent_agent",
        "sub_agents",
        "model",
        # The framework runs a copy of the agent, and says there how it is run.
        "mode",
        "rerun_on_resume",
        "wait_for_output",
    }
)


def path_of(agent: Any) -> str:
    """The agent's name below those of its parents."""
    names = []
    while agent is not None:
        names.append(agent.name)
        agent = getattr(agent, "parent_agent", None)
    return "/".join(reversed(names))


def parts_of(agent: Any) -> Iterator[Any]:
    """The objects that an agent is made with, which its copies share."""
    for name, value in vars(agent).items():
        if name not in _NO_SETUP or name == "model":
            yield from value if isinstance(value, list) else (value,)


def agent_deps(agent: Any) -> list[Dep]:
    """What each turn of the agent is made with: its setup, its model, its callbacks' code."""
    path, found = path_of(agent), []
    if hasattr(agent, "canonical_model"):
        fields = sorted(set(type(agent).model_fields) - _NO_SETUP)
        made = [[name, setup(getattr(agent, name, None))] for name in fields]
        found.append(Dep(DepKind.PROMPT, path, digest(spelled(made))))
        model = agent.canonical_model
        named = f"{type(model).__qualname__}:{model.model}:{setup(model)}"
        found.append(Dep(DepKind.MODEL, path, digest(named)))
    code = [one for field in _CALLBACKS for one in _code(getattr(agent, field, None))]
    if code:
        found.append(Dep(DepKind.CODE, f"agent:{path}", digest(spelled(code))))
    return found


def _code(said: Any) -> Iterator[str]:
    for one in said if isinstance(said, list) else [said]:
        if callable(one) and (found := code_digest(one)):
            yield found


def tool_deps(tool: Any) -> list[Dep]:
    """What each call of the tool is made with: the code that it runs."""
    code = tool_code(tool)
    return [Dep(DepKind.CODE, f"tool:{tool.name}", code)] if code else []


def declared_deps(config: Any) -> list[Dep]:
    """The tools that a request offers, each by the digest of its declaration."""
    found = []
    for offered in getattr(config, "tools", None) or ():
        for declared in getattr(offered, "function_declarations", None) or ():
            said = declared.model_dump_json(exclude_none=True)
            found.append(Dep(DepKind.TOOL, declared.name or "", digest(said)))
    return found


async def definitions_of(root: Any) -> dict[tuple[DepKind, str], str]:
    """The digests of today of all that stands behind the agents and tools below `root`.

    Of tools, what a request would offer; a tool set is asked for its tools.
    """
    pins: dict[tuple[DepKind, str], str] = {}
    async for dep in _definitions(root, set()):
        pins[dep.kind, dep.ref] = dep.digest
    return pins


async def _definitions(node: Any, seen: set[int]) -> Any:
    if id(node) in seen:
        return
    seen.add(id(node))
    if hasattr(node, "name"):
        for dep in agent_deps(node):
            yield dep
    for tool in await _tools(node):
        for dep in (*tool_deps(tool), *_declared(tool)):
            yield dep
        async for dep in _definitions(getattr(tool, "agent", None), seen):
            yield dep
    below = getattr(getattr(node, "graph", None), "nodes", None) or ()
    for one in (*(getattr(node, "sub_agents", None) or ()), *below):
        async for dep in _definitions(one, seen):
            yield dep


async def _tools(node: Any) -> list[Any]:
    if hasattr(node, "canonical_tools"):
        return list(await node.canonical_tools())
    tool = getattr(node, "tool", None)
    return [] if tool is None else [tool]


def _declared(tool: Any) -> Iterator[Dep]:
    declared = tool._get_declaration()  # noqa: SLF001 - what the model is told about the tool
    if declared is not None:
        said = declared.model_dump_json(exclude_none=True)
        yield Dep(DepKind.TOOL, tool.name, digest(said))
