"""Waits in every way that a user's code may: callbacks that sleep, polls, timeouts, threads."""

import asyncio
import datetime
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from time import sleep

from google.adk.agents import LlmAgent


def order(sku: str) -> dict:
    """Orders something."""
    return {"ok": True}


def now():
    return datetime.datetime.now().isoformat(timespec="seconds")


def backs_off(tool, args, tool_context):
    started = time.monotonic()
    sleep(3600)
    tool_context.state["backed_off"] = [now(), time.monotonic() - started]


async def polls(callback_context):
    seen = []
    for _ in range(10):
        await asyncio.sleep(60)
        seen.append(now())
    callback_context.state["polled"] = seen
    callback_context.state["raced"] = await races()
    callback_context.state["threads"] = await threads()


async def races():
    order = []

    async def say(after, what):
        await asyncio.sleep(after)
        order.append(what)

    async def never():
        await asyncio.Event().wait()

    await asyncio.gather(say(30, "c"), say(10, "a"), say(20, "b"))
    for patience in (5, 15):
        try:
            await asyncio.wait_for(say(10, f"within {patience}"), timeout=patience)
        except TimeoutError:
            order.append(f"not within {patience}")
    try:
        async with asyncio.timeout(7200):
            await never()
    except TimeoutError:
        order.append("gave up")
    return [*order, now()]


def nap(length, order):
    time.sleep(length)
    order.append(length)
    return length


async def threads():
    order = []
    naps = (asyncio.to_thread(nap, length, order) for length in (300, 100, 200))
    await asyncio.gather(*naps)
    try:
        await asyncio.wait_for(asyncio.to_thread(nap, 900, order), timeout=500)
    except TimeoutError:
        order.append("not within 500")
    await asyncio.sleep(1000)
    blocked = []
    with ThreadPoolExecutor() as pool:
        list(pool.map(lambda length: nap(length, blocked), (30, 20)))
    done = threading.Event()

    def set_later():
        time.sleep(50)
        done.set()

    threading.Thread(target=set_later).start()
    done.wait()
    return [*order, *blocked, now()]


root_agent = LlmAgent(
    name="patient",
    model="gemini-2.5-flash",
    instruction="Order what is asked for.",
    tools=[order],
    before_tool_callback=backs_off,
    after_agent_callback=polls,
)
