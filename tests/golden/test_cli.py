"""What commands print, as reviewed; `make golden` rewrites the files."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.command import backstop, excerpt_ledgers

Golden = Callable[[str, str], None]


DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


def scrubbed(text: str) -> str:
    """`text` without its digests: they hang on the ledger's form, which is not ours to hold."""
    return DIGEST.sub("sha256:…", text)


@pytest.fixture(scope="module")
def ledgers(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return excerpt_ledgers(tmp_path_factory.mktemp("excerpt"))


def test_a_diff_is_red_and_says_why(ledgers: tuple[Path, Path], golden: Golden) -> None:
    ran = backstop("diff", *ledgers)
    assert (ran.code, ran.err) == (1, "")
    golden("cli/diff.txt", scrubbed(ran.out))


def test_the_json_of_a_diff(ledgers: tuple[Path, Path], golden: Golden) -> None:
    ran = backstop("diff", *ledgers, "--format", "json")
    told = json.loads(ran.out)
    assert all(told["timing_ms"][part] >= 0 for part in ("load", "replay", "verdict"))
    told["timing_ms"] = dict.fromkeys(told["timing_ms"], 0)
    golden("cli/diff.json", scrubbed(json.dumps(told, indent=2, ensure_ascii=False)) + "\n")


def test_a_ledger_line_by_line(ledgers: tuple[Path, Path], golden: Golden) -> None:
    golden("cli/show.txt", backstop("ledger", "show", ledgers[0]).out)


def test_a_ledger_counted(ledgers: tuple[Path, Path], golden: Golden) -> None:
    golden("cli/stats.txt", backstop("ledger", "stats", ledgers[0]).out)


def test_a_key_explained(golden: Golden) -> None:
    args = '{"amount": 50.0, "user_id": "jo\\u0301"}'
    ran = backstop("canon", "key", "--tool", "send_certificate", "--args", args)
    assert ran.code == 0
    golden("cli/key.txt", ran.out)
