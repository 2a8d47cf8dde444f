"""A till: pays and looks up; stands for a user's agent, with nothing of Backstop in it.

Its model does what it is told: a message `pay 7 10` makes it call `pay`. What really happens
outside goes into the file that TILL_OUT names.
"""

import os

from google.adk.agents import LlmAgent
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_response import LlmResponse
from google.adk.tools.tool_context import ToolContext
from google.genai import types


def _out(line: str) -> None:
    with open(os.environ["TILL_OUT"], "a") as file:
        file.write(line + "\n")


class Obedient(BaseLlm):
    async def generate_content_async(self, llm_request, stream=False):
        _out("model")
        part = llm_request.contents[-1].parts[-1]
        tool, *words = (part.text or "none").split()
        if tool == "pay":
            args = {"order": words[0], "amount": int(words[1])}
        elif tool == "look":
            args = {"order": words[0]}
        else:
            yield LlmResponse(content=types.Content(role="model", parts=[types.Part(text="done")]))
            return
        call = types.Part(function_call=types.FunctionCall(name=tool, args=args))
        yield LlmResponse(content=types.Content(role="model", parts=[call]))


def pay(order: str, amount: int, tool_context: ToolContext) -> dict:
    """Pays an order."""
    _out(f"pay {order} {amount}")
    tool_context.state["paid"] = order
    return {"paid": order, "amount": amount}


def look(order: str) -> dict:
    """Looks an order up."""
    _out(f"look {order}")
    return {"order": order}


root_agent = LlmAgent(name="till", model=Obedient(model="obedient"), tools=[pay, look])
