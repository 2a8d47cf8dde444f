"""Onboards vendors: six weeks from the first letter to the last order, one step per tick.

A tick (`agent.tick`, a message from the scheduler) moves one vendor one step further. Code
decides what is bought, mailed and remembered, and when; two language models read what the
registers say and draft the letters. What has to outlive a step is in the session's state.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from google.adk.agents import LlmAgent
from google.adk.agents.context import Context
from google.adk.apps import App
from google.adk.tools import FunctionTool, LongRunningFunctionTool, ToolContext
from google.adk.workflow import START, Workflow, node

SIDE_EFFECTS: list[tuple[str, str]] = []
"""What the tools below really did: it stays empty where nothing may happen."""

MODEL = "gemini-3.5-flash"


@dataclass(frozen=True)
class Vendor:
    """A vendor, and what is ordered from it: `orders` maps a tick to an amount."""

    name: str
    vendor_id: str
    mail: str
    currency: str
    orders: dict[int, Decimal | float]
    approve_at: int | None = None


VENDORS = {
    "acme": Vendor(
        name="Acme Corporation",
        vendor_id="ACME Corp",
        mail="orders@acme.example",
        currency="USD",
        orders={6: Decimal("18400.00"), 10: Decimal("2250.50"), 14: Decimal("975.25")},
        approve_at=5,
    ),
    "mueller": Vendor(
        name="Müller & Söhne GmbH",
        vendor_id="mueller-soehne",
        mail="einkauf@mueller-soehne.example",
        currency="EUR",
        orders={5: 1299.9, 9: 640.0, 13: 1299.9},
    ),
    "lodz": Vendor(
        name="Łódzka Spółka Przędzalnicza",
        vendor_id="lodzka-spolka",
        mail="biuro@lodzka.example",
        currency="PLN",
        orders={5: Decimal("4310.40"), 8: Decimal("4310.40"), 12: Decimal("990.10")},
    ),
    "sato": Vendor(
        name="佐藤製作所",
        vendor_id="sato-seisakusho",
        mail="keiri@sato.example",
        currency="JPY",
        orders={6: 2400000, 12: 310000},
        approve_at=5,
    ),
    "caetano": Vendor(
        name="Construções São Caetano Ltda.",
        vendor_id="sao-caetano",
        mail="compras@saocaetano.example",
        currency="BRL",
        orders={4: 7150.75, 8: 7150.75, 11: 505.5},
    ),
    "najm": Vendor(
        name="شركة النجم للتجارة",
        vendor_id="al-najm",
        mail="sales@alnajm.example",
        currency="JOD",
        orders={7: Decimal("12500.125"), 11: Decimal("80.5")},
        approve_at=6,
    ),
    "boreal": Vendor(
        name="Énergie Boréale inc.",
        vendor_id="energie-boreale",
        mail="comptes@boreale.example",
        currency="CAD",
        orders={4: 3120.0, 7: Decimal("3120.80")},
    ),
}

DOCUMENTS_AT, TAX_FORM_AT, LAST_TICK = 2, 4, 21
CHECKED_AT = {1: ("register", "sanctions"), 3: ("bank", "tax", "insurance"), 9: ("bank",)}


def lookup_vendor(name: str, aspect: str) -> dict[str, Any]:
    """Says what the registers know about a vendor."""
    SIDE_EFFECTS.append(("lookup_vendor", name))
    return {"aspect": aspect, "status": "clear"}


def send_mail(to: str, subject: str, body: str) -> dict[str, Any]:
    """Sends a mail."""
    SIDE_EFFECTS.append(("send_mail", to))
    return {"status": "sent"}


def create_purchase_order(
    vendor_id: str, po_ref: str, amount: Decimal | float, currency: str, tool_context: ToolContext
) -> dict[str, Any]:
    """Orders from a vendor."""
    SIDE_EFFECTS.append(("create_purchase_order", po_ref))
    tool_context.state["last_order"] = po_ref
    return {"po": po_ref, "status": "open"}


def request_approval(po_ref: str, amount: str, reason: str) -> dict[str, Any]:
    """Asks the head of purchasing to approve an order; the answer takes days."""
    SIDE_EFFECTS.append(("request_approval", po_ref))
    return {"status": "pending", "ticket": f"APR-{po_ref}"}


def schedule_reminder(about: str, days: int) -> dict[str, Any]:
    """Puts a reminder into the purchasing calendar."""
    SIDE_EFFECTS.append(("schedule_reminder", about))
    return {"status": "scheduled", "in_days": days}


look_up, mail, order = map(FunctionTool, (lookup_vendor, send_mail, create_purchase_order))
remind, approve = FunctionTool(schedule_reminder), LongRunningFunctionTool(request_approval)


class StillOpen(Exception):
    """Another delivery is at this call, or nobody knows yet how it ended: come back later."""


async def call(ctx: Context, tool: FunctionTool, **args: Any) -> dict[str, Any]:
    """Runs a tool from code; a refused connection is tried once more."""
    try:
        result = await ctx.run_node(tool, node_input=args)
    except Exception:  # noqa: BLE001 - the workflow wraps what the tool raised
        result = await ctx.run_node(tool, node_input=args)
    if isinstance(result, dict) and "backstop" in result:
        raise StillOpen(f"{tool.name}: {result['backstop']}")
    return result


@node(rerun_on_resume=True)
async def take_stock(ctx: Context, node_input: Any) -> str:
    """Looks the vendor up and tells the reader what today is about."""
    vendor, tick = VENDORS[ctx.state["vendor"]], ctx.state["tick"]
    standing = await call(ctx, look_up, name=vendor.name, aspect="standing")
    task = f"{vendor.name}, day {tick}: standing {standing['status']}."
    if checks := CHECKED_AT.get(tick):
        return f"{task} Check: {', '.join(checks)}."
    if tick == vendor.approve_at:
        ref, amount = f"PO-{ctx.state['vendor']}-{tick + 1}", vendor.orders[tick + 1]
        return f"{task} Get approval for {ref}: {amount} {vendor.currency}."
    return f"{task} Anything to note?"


reader = LlmAgent(
    name="reader",
    model=MODEL,
    instruction="You read vendor registers. Make the checks you are asked for, then sum up.",
    tools=[look_up, approve],
    include_contents="none",
)


@node(rerun_on_resume=True)
async def act(ctx: Context, node_input: Any) -> str:
    """Does what code decides for this tick; chooses whether a letter is due."""
    vendor, tick = VENDORS[ctx.state["vendor"]], ctx.state["tick"]
    if tick == DOCUMENTS_AT:
        await call(ctx, remind, about=f"Documents of {vendor.name}", days=10)
    if tick == TAX_FORM_AT and vendor.currency == "JPY":
        await call(ctx, remind, about=f"Tax form of {vendor.name}", days=21)
    if amount := vendor.orders.get(tick):
        ref = f"PO-{ctx.state['vendor']}-{tick}"
        money = {"amount": amount, "currency": vendor.currency}
        await call(ctx, order, vendor_id=vendor.vendor_id, po_ref=ref, **money)
    ctx.route = "letter" if tick in (0, LAST_TICK) else "none"
    return f"Write to {vendor.name}: {'welcome' if tick == 0 else 'thank you'}."


drafter = LlmAgent(
    name="drafter",
    model=MODEL,
    instruction="You write short, friendly business letters.",
    include_contents="none",
)


@node(rerun_on_resume=True)
async def post(ctx: Context, node_input: Any) -> None:
    """Sends the drafted letter."""
    vendor, first = VENDORS[ctx.state["vendor"]], ctx.state["tick"] == 0
    subject = "Welcome" if first else "Onboarding complete"
    await call(ctx, mail, to=vendor.mail, subject=subject, body=node_input)


@node
async def close(ctx: Context) -> None:
    """Moves on to the next tick; the last one ends the onboarding."""
    ctx.state["done"] = ctx.state["tick"] == LAST_TICK
    ctx.state["tick"] += 1


onboarding = Workflow(
    name="onboarding",
    edges=[
        (START, take_stock, reader, act),
        (act, {"letter": drafter, "none": close}),
        (drafter, post, close),
    ],
)
app = App(name="vendor_onboarding", root_agent=onboarding)
