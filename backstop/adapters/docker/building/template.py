"""The recipe's own part of an image: what the container that installs packages is given.

The digest of it, with the base image's id, names the layer: whatever has an influence on what is
installed is in it, and the candidate's source is not.
"""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Final
from urllib.parse import urlsplit

from backstop.adapters.docker.building.built import CLOCK, COMPILED
from backstop.adapters.docker.building.recipe import Recipe
from backstop.adapters.docker.building.requirements import Packages

HOME: Final = PurePosixPath("/opt/backstop")
ENVIRONMENT: Final = HOME / "env"
WORKPLACE: Final = HOME / "build"
"""Where the container finds what to do, and says what became of it."""
INSTALLER: Final = 65_532
"""The user who installs: not root, and not the one a candidate runs as."""

_INSIDE: Final = Path(__file__).parent / "inside"


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """Files for the workplace, and the digest of all that decides what they make."""

    files: Mapping[str, bytes] = field(repr=False)
    digest: str

    def archive(self) -> bytes:
        """The workplace as a tar archive from the root, owned by the installer."""
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w", format=tarfile.GNU_FORMAT) as tar:
            for folder in (HOME, WORKPLACE):
                member = tarfile.TarInfo(str(folder.relative_to("/")))
                member.type, member.mode = tarfile.DIRTYPE, 0o755
                member.uid = member.gid = INSTALLER
                tar.addfile(member)
            for name, data in sorted(self.files.items()):
                member = tarfile.TarInfo(str((WORKPLACE / name).relative_to("/")))
                member.size, member.mode = len(data), 0o644
                member.uid = member.gid = INSTALLER
                tar.addfile(member, io.BytesIO(data))
        return packed.getvalue()


def template(packages: Packages | None, recipe: Recipe, *, base: str) -> Template:
    """What installs `packages` on the image with the id `base`; None installs our clock alone."""
    plan = {
        "env": None if packages is None else str(ENVIRONMENT),
        "clock": str(CLOCK),
        "compiled": str(COMPILED) if recipe.compiled else None,
        "wheels_only": recipe.wheels_only,
        "preview": packages is not None and packages.preview,
    }
    wanted, bounds = (packages.wanted, packages.bounds) if packages else ([], [])
    deciding = {
        "install.py": (_INSIDE / "install.py").read_bytes(),
        "clock.txt": (_INSIDE / "clock.txt").read_bytes(),
        "requirements.txt": _lines(wanted),
        "bounds.txt": _lines(bounds),
        "plan.json": json.dumps(plan, sort_keys=True).encode(),
    }
    named = {name: hashlib.sha256(data).hexdigest() for name, data in deciding.items()}
    whole = json.dumps([base, _place(recipe.index), named], sort_keys=True)
    files = {**deciding, "plan.json": json.dumps({**plan, "proxy": recipe.proxy}).encode()}
    if recipe.index:
        files["index"] = recipe.index.encode()
    return Template(files=files, digest=hashlib.sha256(whole.encode()).hexdigest())


def _lines(lines: list[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()


def _place(index: str | None) -> str:
    """An index without the name and the password in it, which change nothing."""
    if index is None:
        return ""
    parts = urlsplit(index)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
