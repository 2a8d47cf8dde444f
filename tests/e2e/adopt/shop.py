"""A shop's repository with one agent, and what its production left behind: a session store.

The agent runs on the real ADK runner against a shop of its own on the loopback. Made up are its
model, which answers by a script, and the clock and the ids of its sessions.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import threading
from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import Runner
from google.adk.sessions.sqlite_session_service import SqliteSessionService
from google.genai import types

from tests.e2e.adopted import lay

FILES = {
    ".gitignore": "sessions.db\n__pycache__/\n",
    "requirements.txt": "google-adk\nrequests\n",
    "desk/__init__.py": "from . import agent\n",
    "desk/tools.py": '''\
        """What the desk can do."""

        import os

        import requests

        SHOP = os.environ["SHOP_URL"]


        def get_order(order_id: str) -> dict:
            """Returns an order: its customer, its state and its total."""
            return requests.get(f"{SHOP}/orders/{order_id}", timeout=10).json()


        def refund_order(order_id: str, cents: int) -> dict:
            """Pays an order back to its customer."""
            asked = {"order_id": order_id, "cents": cents}
            return requests.post(f"{SHOP}/refunds", json=asked, timeout=10).json()


        def send_mail(to: str, subject: str, text: str) -> dict:
            """Writes to a customer."""
            asked = {"to": to, "subject": subject, "text": text}
            return requests.post(f"{SHOP}/mails", json=asked, timeout=10).json()
        ''',
    "desk/agent.py": """\
        from google.adk.agents import LlmAgent

        from .tools import get_order, refund_order, send_mail

        root_agent = LlmAgent(
            name="desk",
            model="gemini-2.5-flash",
            instruction="You serve the customers of a shop. Look an order up, then pay it back.",
            tools=[get_order, refund_order, send_mail],
        )
        """,
}
CUSTOMERS = {"K7QX2": "ada@example.org", "M3TT9": "ben@example.org", "P8LW4": "cem@example.org"}


class _Shop(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        order = self.path.rpartition("/")[2]
        self._say({"order_id": order, "customer": CUSTOMERS[order], "cents": 4900})

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self._say({"status": "done"})

    def _say(self, told: dict[str, Any]) -> None:
        body = json.dumps(told).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # its base's name
        """Says nothing."""


class _Scripted(BaseLlm):
    """Looks the order up, pays it back, writes to the customer, and says so."""

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        parts = [part for content in llm_request.contents for part in content.parts or ()]
        order = next(part.text for part in reversed(parts) if part.text and "order" in part.text)
        order = order.split()[-1]
        answered = [one.function_response for one in parts if one.function_response]
        calls: list[tuple[str, dict[str, Any]]] = [
            ("get_order", {"order_id": order}),
            ("refund_order", {"order_id": order, "cents": 4900}),
            (
                "send_mail",
                {
                    "to": CUSTOMERS[order],
                    "subject": f"Your refund for {order}",
                    "text": "We have paid 49.00 back.",
                },
            ),
        ]
        if len(answered) == len(calls):
            said = types.Part(text=f"{order} is paid back.")
        else:
            name, args = calls[len(answered)]
            said = types.Part(function_call=types.FunctionCall(name=name, args=args))
        yield LlmResponse(content=types.Content(role="model", parts=[said]))


def lay_shop(root: Path) -> Path:
    """The repository, committed on `main`, and beside it (not in it) `sessions.db`."""
    lay(root, FILES)
    git = ["git", "-c", "user.name=Ada", "-c", "user.email=ada@example.org"]
    for command in (["init", "-q", "-b", "main"], ["add", "."], ["commit", "-qm", "The desk"]):
        subprocess.run([*git, *command], cwd=root, check=True)
    ran = subprocess.run(
        [sys.executable, "-m", __name__, str(root)], capture_output=True, text=True, check=False
    )
    if ran.returncode:
        raise AssertionError(ran.stderr)
    return root


@contextmanager
def _shop() -> Iterator[str]:
    server = HTTPServer(("127.0.0.1", 0), _Shop)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()


async def _work(root: Path) -> None:
    from desk.agent import root_agent  # type: ignore[import-not-found]  # of the repository

    root_agent.model = _Scripted(model="scripted")
    sessions = SqliteSessionService(str(root / "sessions.db"))
    runner = Runner(app_name="desk", agent=root_agent, session_service=sessions)
    for order in CUSTOMERS:
        session = await sessions.create_session(
            app_name="desk", user_id="shop", session_id=f"case-{order}"
        )
        asked = types.Content(role="user", parts=[types.Part(text=f"Pay back my order {order}")])
        async for _ in runner.run_async(user_id="shop", session_id=session.id, new_message=asked):
            pass


def main() -> None:
    """Let the agent of the repository named by the first argument work three cases."""
    root = Path(sys.argv[1])
    sys.path.insert(0, str(root))
    with _shop() as url:
        os.environ["SHOP_URL"] = url
        asyncio.run(_work(root))


if __name__ == "__main__":
    main()
