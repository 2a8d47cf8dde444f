"""Orders things: an LlmAgent with a before_tool callback that rewrites, and what a user's code draws."""

import asyncio
import datetime
import os
import platform
import random
import secrets
import socket
import time
import uuid

from google.adk.agents import LlmAgent

SIDE_EFFECTS = []


def order(sku: str, qty: int = 1) -> dict:
    """Orders something."""
    SIDE_EFFECTS.append(sku)
    return {"ok": True}


async def look(sku: str) -> dict:
    """Looks something up."""
    SIDE_EFFECTS.append(sku)
    return {"ok": True}


def rewrite(tool, args, tool_context):
    args["sku"] = args["sku"].upper()
    tool_context.state["drawn"] = [
        str(datetime.datetime.now()),
        str(datetime.date.today()),
        time.time(),
        str(uuid.uuid4()),
        str(uuid.uuid1()),
        random.random(),
        random.Random().random(),
        secrets.token_hex(8),
        f"{os.getpid()} {socket.gethostname()} {platform.node()}",
    ]
    tool_context.state["bodies"] = len(SIDE_EFFECTS)


async def mark(callback_context, llm_response):
    started = time.monotonic()
    await asyncio.sleep(0.01)
    callback_context.state["after_model"] = callback_context.state.get("after_model", 0) + 1
    callback_context.state["slept"] = 0.005 < time.monotonic() - started < 5
    return None


root_agent = LlmAgent(
    name="orders",
    model="gemini-2.5-flash",
    instruction="Order what is asked for.",
    tools=[order, look],
    before_tool_callback=rewrite,
    after_model_callback=mark,
)
