"""What the harness needs, copied into a folder that a candidate's interpreter can import.

The candidate's environment has its own packages and none of ours, so the harness travels:
its own files, the files that recorder and replay share, the canonical form, and
`time-machine`, the one package that it brings along.
"""

from __future__ import annotations

import ast
import importlib.util
import shutil
import threading
from pathlib import Path
from typing import Final

from backstop.errors import MissingExtra, SandboxError

PACKAGE: Final = "backstop_harness"
MODULE: Final = f"{PACKAGE}.replay.harness"
"""What ``python -m`` runs."""

_SOURCE: Final = Path(__file__).parents[1]
_FOLDERS: Final = ("adk", "replay/harness")
_FIRST_OF_CORE: Final = "canon"
_CLOCK: Final = ("time_machine", "_time_machine")
_PARSING: Final = threading.Lock()
"""CPython 3.11 counts how deep its parser is for all threads together, and breaks at two."""


def write_bundle(folder: Path) -> None:
    """Write the package `PACKAGE` and the clock below `folder`, which is made if need be.

    Raises `MissingExtra` if `time-machine` is not installed beside us.
    """
    write_harness(folder)
    for name in _CLOCK:
        _copy_package(name, folder)


def write_harness(folder: Path) -> None:
    """Write the package `PACKAGE` alone: for an interpreter that has a clock of its own."""
    for part in _FOLDERS:
        for source in sorted((_SOURCE / part).glob("*.py")):
            _copy(source, folder / PACKAGE / part / source.name)
    for name in sorted(_core_modules()):
        _copy(_SOURCE / "core" / f"{name}.py", folder / PACKAGE / "core" / f"{name}.py")
    for package in ("", "adk", "core", "replay", "replay/harness"):
        (folder / PACKAGE / package / "__init__.py").touch()


def _core_modules() -> set[str]:
    """The canonical form and whatever of the core it imports."""
    waiting, found = [_FIRST_OF_CORE], set[str]()
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        found.add(name)
        with _PARSING:
            tree = ast.parse((_SOURCE / "core" / f"{name}.py").read_bytes())
        waiting += [
            node.module
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom) and node.level == 1 and node.module
        ]
    return found


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        shutil.copyfile(source, target)
    except OSError as error:
        raise SandboxError(f"the harness cannot be written to {target}: {error}") from None


def _copy_package(name: str, folder: Path) -> None:
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None:
        raise MissingExtra(
            "a replay freezes the clock with time-machine: pip install 'backstop-gate[adk]'"
        )
    origin = Path(spec.origin)
    if not spec.submodule_search_locations:
        _copy(origin, folder / origin.name)
        return
    for source in sorted(origin.parent.rglob("*")):
        if source.is_file() and "__pycache__" not in source.parts:
            _copy(source, folder / name / source.relative_to(origin.parent))
