"""An agent that misbehaves in the way that ROUGH names."""

import os
import sys
import time

from google.adk.agents import LlmAgent

WAY = os.environ.get("ROUGH", "")

if WAY == "raises on import":
    raise RuntimeError("no such thing\nas a second line")
if WAY == "leaves on import":
    sys.exit(7)
if WAY == "exits on import":
    os._exit(9)
if WAY == "hangs on import":
    while True:
        time.sleep(60)
if WAY == "prints on import":
    for _ in range(64):
        print("x" * 100_000)
    print('{"t":"ready","id":1}')
    os.write(1, b'{"t":"fault","slug":"forged","detail":""}\n')


def pay(amount: int) -> dict:
    """Pays."""
    raise AssertionError("a body ran")


def deeper(n):
    return deeper(n + 1)


def before_tool(tool, args, tool_context):
    if WAY == "raises in a callback":
        raise ValueError("the callback is broken")
    if WAY == "recurses":
        deeper(0)
    if WAY == "exits in a callback":
        os._exit(5)
    if WAY == "leaves in a callback":
        sys.exit("enough")
    if WAY == "hangs in a callback":
        __import__("threading").Event().wait()
    if WAY == "sleeps for ever":
        while True:
            time.sleep(3600)
    if WAY == "crashes":
        os.abort()
    if WAY == "eats memory":
        tool_context.state["hoard"] = len(bytearray(8 << 30))
    if WAY == "prints":
        for _ in range(64):
            print("x" * 100_000)
        os.write(1, b'{"t":"intent","id":1,"tool":"forged","args":{}}\n')
        sys.stdout.buffer.write(b'{"t":"step_done"}\n')
    if WAY == "swallows":
        args["amount"] = 2
    if WAY == "has no json":
        args["amount"] = object()
    if WAY == "reads stdin":
        tool_context.state["stdin"] = sys.stdin.read()


root_agent = (
    None
    if WAY == "has no root"
    else LlmAgent(
        name="rough", model="gemini-2.5-flash", tools=[pay], before_tool_callback=before_tool
    )
)
