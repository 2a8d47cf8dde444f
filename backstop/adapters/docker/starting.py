"""How the harness gets into a container without a mount: as the first line of its input."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

_WRITE_AND_RUN: Final = """
import importlib, json, os, runpy, sys
size, folder, scratch, module = int(sys.argv[1]), *sys.argv[2:5]
del sys.argv[1:5]
data = bytearray()
while len(data) < size:
    chunk = os.read(0, size - len(data))
    if not chunk:
        os._exit(9)
    data += chunk
for name, text in json.loads(data).items():
    path = os.path.join(folder, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, 'w', encoding='utf-8') as file:
        file.write(text)
del data
os.makedirs(os.path.join(scratch, 'tmp'), exist_ok=True)
os.chdir(scratch)
importlib.invalidate_caches()
runpy.run_module(module, run_name='__main__', alter_sys=True)
"""


_LIMIT_AND_BECOME: Final = """
import os, resource, sys
for bound in sys.argv[1].split(','):
    name, _, value = bound.partition('=')
    which, most = getattr(resource, 'RLIMIT_' + name.upper()), int(value)
    hard = resource.getrlimit(which)[1]
    most = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(which, (most, most))
os.execv(sys.argv[2], sys.argv[2:])
"""


def packed(bundle: Callable[[Path], None]) -> bytes:
    """The text files that `bundle` writes into a folder, as bytes to be sent."""
    with tempfile.TemporaryDirectory(prefix="backstop-") as name:
        folder = Path(name) / "bundle"
        bundle(folder)
        files = {
            str(path.relative_to(folder)): path.read_text(encoding="utf-8")
            for path in sorted(folder.rglob("*"))
            if path.is_file()
        }
    return json.dumps(files).encode()


def command(
    *, python: str, size: int, folder: str, scratch: str, module: str, options: list[str]
) -> list[str]:
    """What runs in the container: it takes `size` bytes of files, and becomes `module`."""
    return [python, "-P", "-s", "-c", _WRITE_AND_RUN, str(size), folder, scratch, module, *options]


def limiting(command: Sequence[str], ulimits: Sequence[Mapping[str, Any]]) -> list[str]:
    """The same `command`, behind a first step that takes these rlimits upon itself.

    It imports nothing that an installed package could bring along.
    """
    bounds = ",".join(f"{one['Name']}={one['Hard']}" for one in ulimits)
    return [command[0], "-I", "-S", "-c", _LIMIT_AND_BECOME, bounds, *command]
