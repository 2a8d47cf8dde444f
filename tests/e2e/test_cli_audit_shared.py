"""``backstop ledger archive`` and ``backstop report audit`` in Firestore, on its emulator."""

from __future__ import annotations

import json

import pytest

from tests.e2e.command import in_a_process
from tests.e2e.test_cli_audit import SPECIMEN, figures
from tests.emulators import firestore, fresh_name


@pytest.mark.emulator
def test_a_shared_archive_answers_as_the_ledger_does_and_is_no_store() -> None:
    to, host = f"firestore://p/(default)/{fresh_name()}", firestore()
    for new in ("1,094 new events", "nothing new"):
        ran = in_a_process("ledger", "archive", SPECIMEN, "--to", to, FIRESTORE_EMULATOR_HOST=host)
        assert (ran.code, ran.err) == (0, "")
        assert new in ran.out
    asked = ("report", "audit", to, "--format", "json")
    kept = json.loads(in_a_process(*asked, FIRESTORE_EMULATOR_HOST=host).out)
    assert (kept["kind"], kept["days"]) == ("archive", figures(SPECIMEN)["days"])
    ran = in_a_process(*asked, FIRESTORE_EMULATOR_HOST="127.0.0.1:9")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("error[store-down]: ")
