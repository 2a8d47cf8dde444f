"""Which table it is, and as whom: names, accounts, ids of jobs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from backstop.adapters.bigquery import BigQueryArchive, Place
from backstop.adapters.bigquery.faults import Complaint, Meaning, fault_of_answer, fault_of_job
from backstop.adapters.bigquery.rows import row_of
from backstop.core.auditlog import tip_at
from backstop.errors import BackstopError, ConfigError, LedgerError
from tests.architecture.source import ROOT
from tests.unit.adapters.bigquery.faking import PLACE, STORY, Says, desk

ASKS = """
import sys
from backstop.adapters.bigquery import BigQueryArchive, Place
from backstop.errors import BackstopError
try:
    BigQueryArchive(place=Place(project="p", dataset="d")).head()
except BackstopError as error:
    print(f"{error.slug}: {error}")
"""


@pytest.mark.parametrize(
    ("project", "dataset", "table"),
    [
        ("p", "d", "t`; DROP TABLE x; --"),
        ("p", "d-1", "t"),
        ("p", "d/../../x", "t"),
        ("P", "d", "t"),
        ("p?x=y", "d", "t"),
        ("", "d", "t"),
        ("p", "d", ""),
        ("p", "d\n", "t"),
    ],
)
def test_a_name_that_could_be_anything_else_is_refused(
    project: str, dataset: str, table: str
) -> None:
    """Names stand in addresses and in SQL."""
    with pytest.raises(ConfigError) as caught:
        Place(project=project, dataset=dataset, table=table)
    assert caught.value.slug == "archive-url"


def test_a_project_of_a_domain_is_one() -> None:
    assert str(Place(project="example.com:desk-1", dataset="Audit_1")) == (
        "bigquery://example.com:desk-1/Audit_1/backstop"
    )


@pytest.mark.parametrize("content", [None, "{}", '{"type": "authorized_user"}', "no JSON"])
def test_an_account_that_cannot_be_used_is_one_line_and_nobody_waits(
    tmp_path: Path, content: str | None
) -> None:
    """Where google-github-actions/auth leaves its file, there may be none, or a broken one."""
    file = tmp_path / "gha-creds.json"
    if content is not None:
        file.write_text(content, encoding="utf-8")
    environ = {name: text for name, text in os.environ.items() if "EMULATOR" not in name}
    done = subprocess.run(
        [sys.executable, "-c", ASKS],
        env={**environ, "GOOGLE_APPLICATION_CREDENTIALS": str(file)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.startswith(
        "store-denied: bigquery://p/d/backstop: no account that is let in"
    )
    assert (done.stderr, len(done.stdout.splitlines())) == ("", 1)


@pytest.mark.parametrize("address", ["http://[x", "ftp://127.0.0.1:9", "http://", "a b:9"])
def test_an_address_of_no_emulator_is_refused_at_once(address: str) -> None:
    with pytest.raises(BackstopError) as caught:
        BigQueryArchive(place=Place(project="p", dataset="d"), emulator=address).head()
    assert caught.value.slug == "store-refused"


def test_the_address_of_an_emulator_may_be_a_url_as_the_vendor_s_client_wants_it() -> None:
    with desk() as it:
        it.open().append(STORY)
        archive = BigQueryArchive(place=PLACE, emulator=f"http://{it.host}/")
        assert archive.head() == it.open().head() == tip_at(STORY[-1])


def test_proxies_and_certificates_of_the_machine_are_none_of_the_emulator_s() -> None:
    with desk() as it:
        it.open().append(STORY)
        environ = {"http_proxy": "http://127.0.0.1:9", "REQUESTS_CA_BUNDLE": "/none", "PATH": ""}
        asks = ASKS.replace('dataset="d")', 'dataset="d", table="t"), emulator=sys.argv[1]')
        assert "emulator" in asks
        done = subprocess.run(
            [sys.executable, "-c", asks, it.host],
            env=environ,
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_certificate_that_is_not_there_is_said_at_once(tmp_path: Path) -> None:
    file = tmp_path / "account.json"
    account = {"client_id": "c", "client_secret": "s", "refresh_token": "secret-0815"}
    file.write_text(json.dumps({"type": "authorized_user", **account}), encoding="utf-8")
    environ = {"GOOGLE_APPLICATION_CREDENTIALS": str(file), "REQUESTS_CA_BUNDLE": "/none"}
    done = subprocess.run(
        [sys.executable, "-c", ASKS],
        env={**environ, "PATH": "", "HOME": str(tmp_path)},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.startswith("store-refused: bigquery://p/d/backstop: no connection")
    assert "secret" not in done.stdout + done.stderr


def test_the_id_of_a_job_is_told_by_the_end_that_it_adds_to() -> None:
    with desk() as one, desk() as same, desk() as other:
        one.open().append(STORY)
        same.open().append(STORY[:3])
        other.fake.created = 2
        other.open().append(STORY)
        (first,), (second,), (third,) = (list(each.fake.jobs) for each in (one, same, other))
        assert first == second != third
        same.open().append(STORY)
        assert len(same.fake.jobs) == 2


def test_an_entry_of_bytes_that_are_no_text_is_refused() -> None:
    """BigQuery would keep other bytes in their place."""
    broken = msgspec.structs.replace(STORY[0], line=b"\xff")
    with pytest.raises(LedgerError) as caught:
        row_of(broken, name="it")
    assert caught.value.slug == "archive-damaged"


@pytest.mark.parametrize(
    ("status", "reason", "meaning"),
    [
        (503, "", Meaning.AGAIN),
        (500, "somethingNew", Meaning.AGAIN),
        (400, "rateLimitExceeded", Meaning.LIMITED),
        (403, "quotaExceeded", Meaning.FULL),
        (403, "billingNotEnabled", Meaning.DENIED),
        (404, "notFound", Meaning.MISSING),
        (409, "duplicate", Meaning.EXISTS),
        (418, "", Meaning.REFUSED),
    ],
)
def test_an_answer_means_what_its_reason_says_else_what_its_status_says(
    status: int, reason: str, meaning: Meaning
) -> None:
    told = {"error": {"message": "a\nb", "errors": [{"reason": reason, "message": "x"}]}}
    fault = fault_of_answer(status, json.dumps(told).encode())
    assert fault.meaning is meaning
    assert fault.said == f"{status} {reason}".strip() + ": a b"


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b'{"error": 3}', b"[" * 100_000, b"\xff"])
def test_a_fault_without_a_reason_is_told_by_its_status(body: bytes) -> None:
    assert fault_of_answer(503, body).meaning is Meaning.AGAIN
    assert fault_of_answer(403, body).said == "403"


def test_a_job_of_an_unknown_reason_is_not_tried_again() -> None:
    fault = fault_of_job(Complaint(reason="new", message="x" * 1000))
    assert fault.meaning is Meaning.REFUSED
    assert len(fault.said) == 300


def test_words_of_a_stranger_stay_on_one_line() -> None:
    with desk() as it:
        it.fake.faults["look"] = [Says(status=400, message="a\r\n::error::b")]
        with pytest.raises(BackstopError, match=r"refused \(400: a ::error::b\)"):
            it.open().head()
