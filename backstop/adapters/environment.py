"""What a Python interpreter has installed, as one digest of what packages say of their files."""

from __future__ import annotations

import hashlib
import json
import sys
from contextlib import suppress
from pathlib import Path
from typing import Final

_OURS: Final = Path(__file__).parents[2]
"""Where our own source lies: it counts by its own digest, installed or not."""


def prefix_of(python: str | None) -> Path:
    """The folder of the environment that `python` belongs to; of our own for None."""
    return Path(sys.prefix) if python is None else Path(python).parent.parent


def installed(python: str | None) -> str | None:
    """Digest of all that can be imported from the environment of `python` beside the library.

    None where that cannot be told: packages that are links to somebody's working copy, or no
    environment of its own.
    """
    prefix = prefix_of(python)
    folders = sorted(prefix.glob("lib/python3*/site-packages"))
    if not folders:
        return None
    total = hashlib.sha256(str(Path(python or sys.executable).resolve()).encode())
    try:
        for folder in folders:
            for entry in sorted(folder.iterdir()):
                said = _said_of(entry)
                if said is None:
                    return None
                total.update(f"{entry.name} {len(said)}\n".encode())
                total.update(said)
    except OSError:
        return None
    return total.hexdigest()


def _said_of(entry: Path) -> bytes | None:
    """What an entry of ``site-packages`` says of its files; None if that is not all of it."""
    if entry.suffix == ".dist-info":
        record = (entry / "RECORD").read_bytes()
        return record if _is_copied(entry) else None
    if entry.suffix == ".pth":
        text = entry.read_bytes()
        return text if all(map(_is_ours, text.decode("utf-8", "replace").splitlines())) else None
    if entry.suffix == ".egg-link":
        return None
    return b""


def _is_copied(info: Path) -> bool:
    """Are the package's files its own, and no link to a working copy other than ours?"""
    with suppress(FileNotFoundError):
        told = json.loads((info / "direct_url.json").read_bytes())
        if told.get("dir_info", {}).get("editable"):
            return info.name.startswith("backstop_gate-")
    return True


def _is_ours(line: str) -> bool:
    """Does a line of a path file add no folder, or ours?"""
    if not line.strip() or line.startswith(("#", "import ", "import\t")):
        return True
    return Path(line.strip()) == _OURS
