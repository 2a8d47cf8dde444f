"""`python -m backstop_harness.replay.harness`: takes the wire first, then everything else.

The wire is what descriptors 0 and 1 were when this began. Before anything else is
imported they are moved to numbers of their own, 0 becomes empty and 1 becomes 2, so that
what the candidate prints or reads never touches it.
"""

from __future__ import annotations

import os

_READ, _WRITE = os.dup(0), os.dup(1)
_empty = os.open(os.devnull, os.O_RDONLY)
os.dup2(_empty, 0)
os.close(_empty)
os.dup2(2, 1)

from .main import main  # noqa: E402 - only now may anything be imported

main(read=_READ, write=_WRITE)
