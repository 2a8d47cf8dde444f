"""The refund desk of a shop: looks an order up, refunds it, writes to the customer."""

from __future__ import annotations

from typing import Any

from google.adk.agents import LlmAgent

MODEL = "gemini-3.5-flash"


def look_up_order(order_id: str) -> dict[str, Any]:
    """Says what was ordered, and for how much."""
    return {"order": order_id, "paid": "49.90", "status": "delivered"}


def refund(order_id: str, amount: str) -> dict[str, Any]:
    """Pays money back for an order."""
    return {"refunded": amount, "order": order_id}


def send_letter(to: str, subject: str, body: str) -> dict[str, Any]:
    """Sends a letter to a customer."""
    return {"sent": to}


root_agent = LlmAgent(
    name="clerk",
    model=MODEL,
    instruction="You run the refund desk. Refund what was bought in full, and write a warm letter.",
    tools=[look_up_order, refund, send_letter],
)
