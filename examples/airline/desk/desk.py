"""What the desk can do: fourteen tools, of which seven change a booking or hand something out.

The bodies stand for calls to a booking system. In a replay none of them runs.
"""

from __future__ import annotations

from typing import Any

SIDE_EFFECTS: list[tuple[str, str]] = []
"""What the tools below really did: it stays empty where nothing may happen."""

INSTRUCTION = """You work at the desk of an airline and help one customer at a time.
Look up the customer and the reservation before you change anything, say what it will cost,
and wait for a plain yes. What you may not decide, you hand over to a colleague."""


def _do(tool: str, what: str) -> str:
    SIDE_EFFECTS.append((tool, what))
    return f"{tool}: done"


def book_reservation(  # noqa: PLR0913, PLR0917 - a booking is that many facts
    user_id: str,
    origin: str,
    destination: str,
    flight_type: str,
    cabin: str,
    flights: list[dict[str, str]],
    passengers: list[dict[str, str]],
    payment_methods: list[dict[str, Any]],
    total_baggages: int,
    nonfree_baggages: int,
    insurance: str,
) -> str:
    """Books seats on one or more flights and charges the customer's means of payment.

    Airports are given by their three-letter codes, `flight_type` is one_way or round_trip,
    `insurance` is yes or no.
    """
    return _do("book_reservation", user_id)


def cancel_reservation(reservation_id: str) -> str:
    """Cancels a whole reservation and sends the money back."""
    return _do("cancel_reservation", reservation_id)


def update_reservation_flights(
    reservation_id: str, cabin: str, flights: list[dict[str, str]], payment_id: str
) -> str:
    """Replaces all flights of a reservation and settles the difference in price."""
    return _do("update_reservation_flights", reservation_id)


def update_reservation_baggages(
    reservation_id: str, total_baggages: int, nonfree_baggages: int, payment_id: str
) -> str:
    """Sets how many bags travel on a reservation, and how many of them are paid for."""
    return _do("update_reservation_baggages", reservation_id)


def update_reservation_passengers(reservation_id: str, passengers: list[dict[str, str]]) -> str:
    """Corrects who travels on a reservation; their number stays."""
    return _do("update_reservation_passengers", reservation_id)


def send_certificate(user_id: str, amount: int) -> str:
    """Gives a customer a voucher over an amount in US dollars."""
    return _do("send_certificate", user_id)


def transfer_to_human_agents(summary: str) -> str:
    """Hands the customer over to a person, with a summary of the case."""
    return _do("transfer_to_human_agents", summary)


def get_reservation_details(reservation_id: str) -> str:
    """Looks up a reservation: flights, passengers, bags and payments."""
    return _do("get_reservation_details", reservation_id)


def get_user_details(user_id: str) -> str:
    """Looks up a customer: address, means of payment, membership, reservations."""
    return _do("get_user_details", user_id)


def list_all_airports() -> str:
    """Lists the airports that the airline serves, with their cities."""
    return _do("list_all_airports", "")


def search_direct_flight(origin: str, destination: str, date: str) -> str:
    """Finds flights without a stop between two airports on a day (YYYY-MM-DD)."""
    return _do("search_direct_flight", f"{origin}-{destination}")


def search_onestop_flight(origin: str, destination: str, date: str) -> str:
    """Finds connections with one stop between two airports on a day (YYYY-MM-DD)."""
    return _do("search_onestop_flight", f"{origin}-{destination}")


def calculate(expression: str) -> str:
    """Works out an arithmetic expression of numbers, signs and brackets."""
    return _do("calculate", expression)


def think(thought: str) -> str:
    """Writes a thought down; nobody is told and nothing changes."""
    return _do("think", thought)


TOOLS = [
    book_reservation,
    cancel_reservation,
    update_reservation_flights,
    update_reservation_baggages,
    update_reservation_passengers,
    send_certificate,
    transfer_to_human_agents,
    get_reservation_details,
    get_user_details,
    list_all_airports,
    search_direct_flight,
    search_onestop_flight,
    calculate,
    think,
]
