"""Which calls reach outside, by their names: what is not known to be harmless does."""

from __future__ import annotations

import pytest

from backstop.replay.harness.outward import is_outward


@pytest.mark.parametrize(
    ("dotted", "outward"),
    [
        ("sqlalchemy.orm._orm_constructors.relationship", False),
        ("sqlalchemy.ext.asyncio.engine.create_async_engine", False),
        ("sqlalchemy.sql.schema.Column", False),
        ("sqlalchemy.orm.session.Session.execute", True),
        ("sqlalchemy.engine.base.Engine.connect", True),
        ("sqlalchemy.sql.schema.MetaData.create_all", True),
        ("stripe.Charge.create", True),
    ],
)
def test_a_description_of_a_database_reaches_nobody_and_what_speaks_with_one_does(
    dotted: str, outward: bool
) -> None:
    assert is_outward(dotted) is outward
