"""Ways out of a sandbox, tried one by one inside it.

The modules use the standard library alone and reach the container as text, so they run in any
image that has Python: by a `command`, or as a `bundle`, as the harness gets there.
"""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import Any, Final

from tests.docker.ways import entry, files, kernel, network, report
from tests.docker.ways.entry import WAYS

__all__ = ["MODULE", "WAYS", "bundle", "command"]

MODULE: Final = "probe"
"""What runs of a bundle."""

_PARTS: Final = (entry, files, network, kernel, report)
_LOAD: Final = """
import json, sys, types
for name, text in json.loads(sys.argv[1]).items():
    module = sys.modules[name] = types.ModuleType(name)
    exec(compile(text, name, "exec"), vars(module))
module.main()
"""


def command(outside: dict[str, Any]) -> list[str]:
    """What a container has to run to try all ways out; `outside` is for `report`."""
    texts = {part.__name__: inspect.getsource(part) for part in _PARTS}
    return ["python3", "-I", "-c", _LOAD, json.dumps(texts), json.dumps(outside)]


def bundle(outside: dict[str, Any], folder: Path) -> None:
    """Write into a folder what `python -m` runs as `MODULE` to try all ways out."""
    for part in _PARTS:
        file = folder / Path(*part.__name__.split("."))
        file.parent.mkdir(parents=True, exist_ok=True)
        file.with_suffix(".py").write_text(inspect.getsource(part), encoding="utf-8")
    imports = "".join(f"import {part.__name__} as last\n" for part in _PARTS)
    told = f"import sys\nsys.argv.append({json.dumps(outside)!r})\n"
    (folder / f"{MODULE}.py").write_text(f"{imports}{told}last.main()\n", encoding="utf-8")
