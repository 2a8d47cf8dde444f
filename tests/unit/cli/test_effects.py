"""What the options of ``effects resolve`` say."""

from __future__ import annotations

import pytest

from backstop.cli.effects import word
from backstop.errors import UsageError
from backstop.guard.claims.resolving import Word


def said(
    *, committed: str | None = None, failed: bool = False, retry: bool = False, force: bool = False
) -> Word:
    return word(committed=committed, failed=failed, retry=retry, reason="so", by="ana", force=force)


def test_each_outcome_has_its_option() -> None:
    done = said(committed='{"b": 1.0, "a": "x"}')
    assert (done.to, bytes(done.result), done.by) == ("committed", b'{"a":"x","b":1}', "person:ana")
    assert said(failed=True).to == "failed"
    assert (said(retry=True, force=True).to, said(retry=True, force=True).force) == (
        "reopened",
        True,
    )


def test_without_a_name_the_user_says_so() -> None:
    named = word(committed=None, failed=True, retry=False, reason="", by=None, force=False)
    assert named.by.startswith("person:")
    assert len(named.by) > len("person:")


def test_one_outcome_is_said_and_no_more() -> None:
    with pytest.raises(UsageError, match="say one of"):
        said()
    with pytest.raises(UsageError, match="say one of"):
        said(failed=True, retry=True)
    with pytest.raises(UsageError, match="--force goes with --retry"):
        said(failed=True, force=True)


@pytest.mark.parametrize("text", ["done", "{'a': 1}", '{"a": NaN}', '{"a":1,"a":2}', ""])
def test_a_result_is_strict_json(text: str) -> None:
    with pytest.raises(UsageError, match="--committed: the result is no strict JSON"):
        said(committed=text)
