"""Repositories as strangers have them, written to a folder file by file."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Final

TOOLS: Final = '''\
    import requests


    def get_order(order_id: str) -> dict:
        """Returns an order."""
        return requests.get(f"https://shop.example/orders/{order_id}").json()


    def cancel_order(order_id: str, reason: str) -> dict:
        """Cancels an order."""
        return requests.post(f"https://shop.example/orders/{order_id}/cancel").json()
    '''
IMPORTS: Final = (
    "from google.adk.agents import LlmAgent\nfrom {tools} import cancel_order, get_order\n"
)
ROOT: Final = (
    'root_agent = LlmAgent(name="desk", model="gemini-2.5-flash", '
    "tools=[get_order, cancel_order])\n"
)


def lay(root: Path, files: Mapping[str, str]) -> Path:
    """Write files below `root`, their text without its indentation."""
    for path, text in files.items():
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(textwrap.dedent(text), encoding="utf-8")
    return root


def desk(folder: str, *, before: str = "", root: str = ROOT) -> dict[str, str]:
    """An agent in `folder` with two tools; `before` runs first when it is imported."""
    return {
        f"{folder}/__init__.py": "",
        f"{folder}/tools.py": TOOLS,
        f"{folder}/agent.py": textwrap.dedent(before) + IMPORTS.format(tools=".tools") + root,
    }
