"""Who says so: asked for where a person answers for what is let pass."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from backstop.errors import UsageError


def author(said: str | None, *, option: str, folder: Path, environ: Mapping[str, str]) -> str:
    """What was `said`, else git's ``user.email`` in `folder`, else ``USER``.

    Raises `UsageError` where nobody is known, or a name cannot be seen as it is.
    """
    name = " ".join((said or _by_git(folder) or environ.get("USER", "")).split())
    if not name:
        raise UsageError(f"nobody is known to answer for it: say who with {option}")
    return visible(name, option=option)


def visible(text: str, *, option: str) -> str:
    """`text`, if all of it can be seen: it is reviewed in a diff. Raises `UsageError`."""
    if not text.isprintable():
        raise UsageError(f"{option}: has characters that cannot be seen: write it in plain words")
    return text


def _by_git(folder: Path) -> str:
    git = shutil.which("git")
    if git is None:
        return ""
    asked = subprocess.run(  # noqa: S603  # a program of the machine, and nothing of a stranger
        [git, "-C", str(folder), "config", "user.email"],
        capture_output=True,
        check=False,
        text=True,
        errors="replace",
    )
    return asked.stdout.strip() if asked.returncode == 0 else ""
