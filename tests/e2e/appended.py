"""Runs a module on the oldest framework, with the packages that only the newest's venv has.

    .venv-oldest/bin/python tests/e2e/appended.py MODULE ARGUMENTS...

The oldest framework lives in an environment of few packages. The test tools and Backstop's own
requirements come from `.venv`, whose packages are looked at last, so the framework and whatever
it came with stay what they are. Under `.venv` itself this changes nothing.
"""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
VERSION = f"python{sys.version_info.major}.{sys.version_info.minor}"
PACKAGES = ROOT / ".venv" / "lib" / VERSION / "site-packages"


def main() -> None:
    sys.path[0] = str(ROOT)
    if str(PACKAGES) not in sys.path:
        sys.path.append(str(PACKAGES))
    module, *sys.argv[1:] = sys.argv[1:]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
