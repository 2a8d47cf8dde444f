"""Who may import whom: the layers, the pure core, the bare harness, the light package."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.architecture.source import PACKAGE, ROOT, imports, python_files, uses

CORE = PACKAGE / "core"

# Values and functions only: nothing here opens, waits, draws or looks around.
PURE_STDLIB = frozenset(
    {
        "__future__",
        "abc",
        "base64",
        "binascii",
        "bisect",
        "collections",
        "dataclasses",
        "datetime",
        "decimal",
        "enum",
        "fractions",
        "functools",
        "hashlib",
        "heapq",
        "hmac",
        "itertools",
        "json",
        "math",
        "numbers",
        "operator",
        "re",
        "string",
        "struct",
        "types",
        "typing",
        "unicodedata",
        "uuid",
    }
)
# Reachable through allowed modules or as builtins, and yet not pure.
IMPURE_NAMES = frozenset({"uuid.uuid1", "uuid.uuid4", "uuid.getnode"})
IMPURE_BUILTINS = frozenset({"open", "print", "input", "exec", "eval", "compile", "__import__"})

# Copied into the harness, where msgspec and our errors do not exist.
STDLIB_ONLY = frozenset({"canon.py", "coercion.py", "fields.py", "spelling.py"})
BROUGHT_ALONG = tuple(f"backstop.core.{name.removesuffix('.py')}" for name in sorted(STDLIB_ONLY))


def impurities(path: Path, *, stdlib_only: bool) -> list[str]:
    """What a file of the core imports or calls although a pure core may not."""
    allowed = PURE_STDLIB if stdlib_only else PURE_STDLIB | {"msgspec"}
    ours = BROUGHT_ALONG if stdlib_only else ("backstop.core", "backstop.errors")
    found = [
        f"{path.name}:{item.line} imports {item.module}"
        for item in imports(path, package=["backstop", "core"])
        if item.module.partition(".")[0] not in allowed and not within(item.module, ours)
    ]
    text = path.read_text(encoding="utf-8")
    found += [
        f"{path.name}:{use.line} uses {use.name}" for use in uses(text) if use.name in IMPURE_NAMES
    ]
    return found + builtin_calls(path)


def within(module: str, packages: Iterable[str]) -> bool:
    """Whether a module is one of the packages, or lies in one."""
    return any(module == name or module.startswith(f"{name}.") for name in packages)


def builtin_calls(path: Path) -> list[str]:
    """Calls of builtins that reach outside."""
    return [
        f"{path.name}:{node.lineno} calls {node.func.id}"
        for node in ast.walk(ast.parse(path.read_bytes()))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in IMPURE_BUILTINS
    ]


def test_the_core_imports_only_what_is_on_its_list() -> None:
    found = [
        line
        for path in python_files("backstop/core")
        for line in impurities(path, stdlib_only=path.name in STDLIB_ONLY)
    ]
    assert found == []


@pytest.mark.parametrize(
    "planted",
    [
        "import httpx",
        "from httpx import get",
        "import google.genai",
        "import os",
        "import random",
        "import time",
        "from backstop import ports",
        "from backstop.clock import now",
        "from ..adapters import sqlite",
        "def late():\n    import httpx",
        "__import__('httpx')",
        "open('/etc/passwd')",
        "from uuid import uuid4",
    ],
)
def test_a_planted_import_in_divergence_is_caught(planted: str, tmp_path: Path) -> None:
    copy = tmp_path / "divergence.py"
    copy.write_bytes((CORE / "divergence.py").read_bytes())
    assert impurities(copy, stdlib_only=False) == []
    with copy.open("a", encoding="utf-8") as file:
        file.write(f"\n{planted}\n")
    assert len(impurities(copy, stdlib_only=False)) == 1


def test_what_is_copied_into_the_harness_needs_no_msgspec(tmp_path: Path) -> None:
    copy = tmp_path / "canon.py"
    copy.write_text("import msgspec\nfrom backstop.errors import BackstopError\n", encoding="utf-8")
    assert len(impurities(copy, stdlib_only=True)) == 2


def test_the_layers_hold() -> None:
    linter = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run(
        [linter, "--no-logo", "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


# pydantic is part of ADK: wherever the one is, so is the other.
HARNESS_MAY_IMPORT = ("google.adk", "google.genai", "opentelemetry", "pydantic", "time_machine")


def strangers(path: Path, *, package: list[str] | None = None) -> list[str]:
    """Imports of a harness file that will not be there, or not be the right ones, where it runs."""
    found: list[str] = []
    for item in imports(path, package=package):
        top = item.module.partition(".")[0]
        if item.relative:
            known = within(item.module, ("backstop.replay.harness", "backstop.adk", *BROUGHT_ALONG))
        else:
            known = top in sys.stdlib_module_names or within(item.module, HARNESS_MAY_IMPORT)
        if not known:
            found.append(f"{path.name}:{item.line} imports {item.module}")
    return found


def test_the_harness_needs_only_the_candidates_own_adk() -> None:
    places = ("backstop/replay/harness", "backstop/adk")
    assert [line for path in python_files(*places) for line in strangers(path)] == []


@pytest.mark.parametrize(
    "planted",
    [
        "import msgspec",
        "from backstop.core import canon",
        "from ...core import identity",
        "import google.cloud",
    ],
)
def test_a_planted_import_in_the_harness_is_caught(planted: str, tmp_path: Path) -> None:
    path = tmp_path / "planted.py"
    path.write_text(f"import json\nfrom ...core import canon\n{planted}\n", encoding="utf-8")
    assert len(strangers(path, package=["backstop", "replay", "harness"])) == 1


def test_importing_the_package_loads_no_vendor_library() -> None:
    script = (
        "import sys; before = set(sys.modules)\n"
        "import backstop\n"
        "tops = {name.partition('.')[0] for name in set(sys.modules) - before}\n"
        "print(*sorted(tops - set(sys.stdlib_module_names)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True
    )
    # msgspec reads ledger lines: it is the one dependency of the core, and no vendor's.
    assert set(done.stdout.split()) <= {"backstop", "msgspec"}
