"""What happens to each agent while it is recorded, and what the gate has to say of it then."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from google.adk.models.llm_response import LlmResponse
from google.genai import types

Parts: TypeAlias = list[types.Part]
Answer: TypeAlias = Parts | tuple[LlmResponse, ...]
Waiting: TypeAlias = dict[str, str]
"""Calls that wait for an answer from outside: names by call id."""

Message: TypeAlias = str | Callable[[Waiting], types.Content]

RELABELS: Final = """

def _upper(tool, args, tool_context):
    if "order" in args:
        args["order"] = args["order"].upper()


for _agent in [one for one in globals().values() if hasattr(one, "before_tool_callback")]:
    _agent.before_tool_callback = _upper
"""
"""Appended to a version: every order goes by another spelling."""


@dataclass(frozen=True, kw_only=True)
class Construct:
    """One agent: what is said to it, what its models answer, and how the gate judges it.

    `why` is part of the reason of a verdict that is no pass, empty for a pass. `effects` is how
    many went out. `relabels` replaces a text instead of appending `RELABELS`; `drops` replaces
    one so that an effect is not asked for any more. `blocks` says that a version which relabels
    is blocked; else its verdict is the same as before.
    """

    name: str
    steps: Sequence[Message]
    models: Mapping[str, Sequence[Answer]]
    effects: int = 1
    why: str = ""
    relabels: tuple[str, str] | None = None
    drops: tuple[str, str] | None = None
    blocks: bool = True
    streaming: bool = False


def calls(*asked: tuple[str, dict[str, Any]]) -> Parts:
    """A model's answer that calls tools."""
    return [types.Part(function_call=types.FunctionCall(name=n, args=a)) for n, a in asked]


def says(text: str) -> Parts:
    """A model's answer in words."""
    return [types.Part(text=text)]


def answers(name: str, **response: Any) -> Callable[[Waiting], types.Content]:
    """A message that answers the one waiting call of that name."""

    def answer(waiting: Waiting) -> types.Content:
        (call,) = [known for known, tool in waiting.items() if tool == name]
        told = types.FunctionResponse(id=call, name=name, response=response)
        return types.Content(role="user", parts=[types.Part(function_response=told)])

    return answer


def _response(parts: Parts, *, partial: bool = False) -> LlmResponse:
    return LlmResponse(content=types.Content(role="model", parts=parts), partial=partial)


_YES: Final = answers("adk_request_confirmation", confirmed=True)
_PAY: Final = calls(("pay", {"order": "a7"}))
_CODE: Final = [
    types.Part(
        executable_code=types.ExecutableCode(code="print(6 * 7)", language=types.Language.PYTHON)
    )
]

_RAN: Final = [
    types.Part(
        code_execution_result=types.CodeExecutionResult(
            outcome=types.Outcome.OUTCOME_OK, output="42\n"
        )
    )
]

CONSTRUCTS: Final = (
    Construct(
        name="mcp_sheet",
        steps=["add", "again"],
        models={
            "mcp_sheet": [
                calls(("add_row", {"order": "a7"}), ("count_rows", {"sheet": "s"})),
                says("added"),
                calls(("add_row", {"order": "b8", "amount": 2})),
                says("added"),
            ]
        },
        effects=2,
    ),
    Construct(
        name="mcp_sheets",
        steps=["add", _YES],
        models={
            "mcp_sheets": [
                calls(("old_add_row", {"order": "a7"})),
                calls(("new_add_row", {"order": "a7"})),
                says("added"),
            ]
        },
        effects=2,
    ),
    Construct(
        name="mcp_prompt",
        steps=["pay"],
        models={"mcp_prompt": [_PAY, says("paid")]},
        why="was not replayed to its end",
        blocks=False,
    ),
    Construct(name="openapi", steps=["pay"], models={"openapi": [_PAY, says("paid")]}),
    Construct(
        name="agent_tool",
        steps=["pay"],
        models={
            "agent_tool": [calls(("payer", {"request": "a7"})), says("done")],
            "payer": [_PAY, says("paid")],
        },
    ),
    Construct(
        name="agent_tool_apart",
        steps=["pay"],
        models={
            "agent_tool_apart": [calls(("payer", {"request": "a7"})), says("done")],
            "payer": [_PAY, says("paid")],
        },
        why="runs without plugins",
    ),
    Construct(
        name="sub_agents",
        steps=["pay", "note"],
        models={
            "sub_agents": [
                calls(("transfer_to_agent", {"agent_name": "payer"})),
                calls(("note", {"order": "a7"})),
                says("noted"),
            ],
            "payer": [
                _PAY,
                says("paid"),
                calls(("transfer_to_agent", {"agent_name": "sub_agents"})),
            ],
        },
        effects=2,
    ),
    Construct(
        name="parallel",
        steps=["pay"],
        models={
            "left": [_PAY, says("paid")],
            "right": [calls(("pay", {"order": "b8"})), says("paid")],
        },
        effects=2,
    ),
    Construct(
        name="loop",
        steps=["pay"],
        models={
            "payer": [_PAY, says("on"), calls(("pay", {"order": "b8"})), calls(("exit_loop", {}))]
        },
        effects=2,
        drops=("max_iterations=5", "max_iterations=1"),
    ),
    Construct(
        name="workflow",
        steps=["go", answers("adk_request_input", result="yes")],
        models={"payer": [_PAY, says("paid")]},
        effects=3,
        relabels=("    return order\n", "    return order.upper()\n"),
        drops=('    await ctx.run_node(SHIP, node_input={"order": spelled("b8")})\n', ""),
    ),
    Construct(
        name="confirmation",
        steps=["pay", _YES],
        models={"confirmation": [_PAY, says("paid")]},
    ),
    Construct(
        name="long_running",
        steps=["go", answers("ticket", status="yes"), answers("ticket", status="yes")],
        models={
            "long_running": [
                calls(("ticket", {"order": "a7"})),
                calls(("ticket", {"order": "b8"})),
                calls(("finish", {"order": "a7"})),
                says("finished"),
            ]
        },
        effects=3,
    ),
    Construct(
        name="code_executor",
        steps=["work it out, and pay"],
        models={"code_executor": [_CODE, _PAY, says("paid")]},
        why="executes code that a model wrote",
        blocks=False,
    ),
    Construct(
        name="code_built_in",
        steps=["work it out, and pay"],
        models={"code_built_in": [[*_CODE, *_RAN, *_PAY], says("paid")]},
        why="executes code that a model wrote",
    ),
    Construct(
        name="streaming",
        steps=["pay"],
        models={
            "streaming": [
                (
                    _response(says("I "), partial=True),
                    _response(_PAY, partial=True),
                    _response([*says("I pay"), *_PAY]),
                ),
                says("paid"),
            ]
        },
        streaming=True,
    ),
)
