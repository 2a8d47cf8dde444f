"""Says which version of the framework an environment holds."""

from __future__ import annotations

import sys

from google.adk.version import __version__

if __name__ == "__main__":
    sys.stdout.write(__version__)
