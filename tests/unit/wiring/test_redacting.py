"""Where the redaction key comes from."""

from __future__ import annotations

from pathlib import Path

import pytest

from backstop.core.redaction import NoRedactionKey, RedactionKey
from backstop.wiring.redacting import redaction_key

KEY = RedactionKey(secret=b"0123456789abcdef")


def test_the_key_is_in_the_environment_or_in_the_file_that_it_names(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text("0123456789abcdef\n", encoding="utf-8")
    assert redaction_key({"BACKSTOP_REDACTION_KEY": "0123456789abcdef"}) == KEY
    assert redaction_key({"BACKSTOP_REDACTION_KEY_FILE": str(file)}) == KEY
    assert redaction_key({}) is None


def test_a_key_that_cannot_be_used_is_refused_and_not_passed_over(tmp_path: Path) -> None:
    damaged = tmp_path / "key"
    damaged.write_bytes(b"\xff" * 32)
    for environment in (
        {"BACKSTOP_REDACTION_KEY": "short"},
        {"BACKSTOP_REDACTION_KEY_FILE": str(tmp_path / "none")},
        {"BACKSTOP_REDACTION_KEY_FILE": str(damaged)},
    ):
        with pytest.raises(NoRedactionKey):
            redaction_key(environment)
