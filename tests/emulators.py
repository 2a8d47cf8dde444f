"""Emulators for tests: one of each in a test process, started by the first test that asks.

What an emulator has taken in it never gives back: tests keep their data small, and each uses
names of its own (`fresh_name`). A folder of tests gets the fixtures by importing them in its
conftest.py.
"""

from __future__ import annotations

import atexit
import uuid
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import Final

import pytest

from backstop.adapters.emulators import (
    bigquery_emulator,
    emulators_missing,
    firestore_emulator,
    pubsub_emulator,
)

BIGQUERY: Final = Path(__file__).parents[1] / ".venv-bigquery"
"""Where `make test` puts the emulator of BigQuery."""

_RUNNING: Final = ExitStack()
atexit.register(_RUNNING.close)


@pytest.fixture(scope="session")
def firestore_host() -> str:
    """``address:port`` of a Firestore emulator."""
    return firestore()


@pytest.fixture(scope="session")
def pubsub_host() -> str:
    """``address:port`` of a Pub/Sub emulator."""
    return pubsub()


def firestore() -> str:
    """``address:port`` of the Firestore emulator of this test process."""
    _or_skip()
    return _firestore()


def pubsub() -> str:
    """``address:port`` of the Pub/Sub emulator of this test process."""
    _or_skip()
    return _pubsub()


def bigquery() -> str:
    """``address:port`` of the BigQuery emulator of this test process; its project is ``local``."""
    if (why := bigquery_missing()) is not None:
        pytest.skip(why)
    return _bigquery()


def bigquery_missing() -> str | None:
    """Why there is no emulator of BigQuery; None if there is one."""
    if (BIGQUERY / ".installed").is_file():
        return None
    return (
        f"the emulator of BigQuery is not installed ({BIGQUERY.name}): `make test` does so where "
        "there is a Python 3.13"
    )


def fresh_name(kind: str = "c") -> str:
    """A name that nobody else uses, for a collection, a topic or a project."""
    return f"{kind}-{uuid.uuid4().hex[:12]}"


# A fixture that is imported into two folders is two fixtures; the emulator is still one.
@cache
def _firestore() -> str:
    return _RUNNING.enter_context(firestore_emulator())


@cache
def _pubsub() -> str:
    return _RUNNING.enter_context(pubsub_emulator())


@cache
def _bigquery() -> str:
    return _RUNNING.enter_context(bigquery_emulator(BIGQUERY))


def _or_skip() -> None:
    if (why := emulators_missing()) is not None:
        pytest.skip(why)
