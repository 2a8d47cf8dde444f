"""How the harness gets into a container without a mount: as the first line of its input."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

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
