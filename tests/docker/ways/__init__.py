"""Ways out of a sandbox, tried one by one inside it.

The modules use the standard library alone and reach the container as text (`command`), so they
run in any image that has Python.
"""

from __future__ import annotations

import inspect
import json
from typing import Any, Final

from tests.docker.ways import entry, files, kernel, network, report
from tests.docker.ways.entry import WAYS

__all__ = ["WAYS", "command"]

_LOAD: Final = """
import json, sys, types
for name, text in json.loads(sys.argv[1]).items():
    module = sys.modules[name] = types.ModuleType(name)
    exec(compile(text, name, "exec"), vars(module))
module.main()
"""


def command(outside: dict[str, Any]) -> list[str]:
    """What a container has to run to try all ways out; `outside` is for `report`."""
    texts = {part.__name__: inspect.getsource(part) for part in (entry, files, network, kernel)}
    texts[report.__name__] = inspect.getsource(report)
    return ["python3", "-I", "-c", _LOAD, json.dumps(texts), json.dumps(outside)]
