"""A session database behind a URL that cannot be opened: one line says what to look at."""

from __future__ import annotations

import pytest

from backstop.adapters.importing.sessions import stored_at
from backstop.adapters.told import ImportRefused


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("nosuch://host/db", "no database is known by this scheme"),
        ("mysql+mysqldb://ann:secret@127.0.0.1:1/x", "its driver MySQLdb is not installed"),
        ("sqlite:///nowhere/x.db", "there is no such file"),
    ],
)
def test_it_says_what_is_missing_and_shows_no_password(url: str, said: str) -> None:
    with pytest.raises(ImportRefused) as refused:
        list(stored_at(url))
    assert said in str(refused.value)
    assert "secret" not in str(refused.value)
    assert "Error" not in str(refused.value)
