"""Whether a change is one of packages, or only looks like it."""

from __future__ import annotations

import pytest

from backstop.gate.packages import differing

LOCK = b"""version = 1
[[package]]
name = "desk"
version = "1.0"
source = { editable = "." }
[[package]]
name = "google-adk"
version = "2.11.0"
"""
PROJECT = b"""[project]
name = "desk"
version = "1.0"
dependencies = ["google-adk>=2.11"]
[tool.ruff]
line-length = 100
"""


@pytest.mark.parametrize(
    ("path", "before", "old", "new", "differs"),
    [
        ("uv.lock", LOCK, b'"2.11.0"', b'"2.13.0"', True),
        ("a/uv.lock", LOCK, b'"1.0"', b'"1.1"', False),
        ("uv.lock", LOCK, b"version = 1\n", b"version = 1\n\n", False),
        ("pyproject.toml", PROJECT, b"google-adk>=2.11", b"google-adk>=2.13", True),
        ("pyproject.toml", PROJECT, b"version = ", b'requires-python = ">=3.12"\nversion = ', True),
        ("pyproject.toml", PROJECT, b'version = "1.0"', b'version = "1.1"', False),
        ("pyproject.toml", PROJECT, b"100", b"80", False),
        ("pyproject.toml", PROJECT, b"[tool.ruff]", b"[tool.ruff", True),
        ("requirements.txt", b"google-adk==2.11.0", b"2.11.0", b"2.13.0", True),
        ("requirements.txt", b"google-adk==2.11.0", b"2.11.0", b"2.11.0 # held\n\n# now", False),
        ("requirements.txt", b"a @ git+https://x#egg=a", b"#egg=a", b"#egg=b", True),
        ("pylock.toml", b"a = 1", b"1", b"2", True),
        ("uv.lock", b"\xff", b"\xff", b"\xfe", True),
    ],
    ids=lambda given: given.decode("latin-1")[:20] if isinstance(given, bytes) else str(given),
)
def test_a_file_differs_where_it_names_other_packages(
    path: str, before: bytes, old: bytes, new: bytes, differs: bool
) -> None:
    after = before.replace(old, new)
    assert after != before
    assert differing({path: before}, {path: after}) == ([path] if differs else [])


def test_a_file_that_came_or_went_differs() -> None:
    assert differing({"uv.lock": LOCK}, {}) == ["uv.lock"]
    assert differing({}, {"requirements.txt": b""}) == ["requirements.txt"]
    assert differing({"uv.lock": LOCK}, {"uv.lock": LOCK}) == []
