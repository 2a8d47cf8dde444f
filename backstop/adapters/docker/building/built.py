"""What a build hands over: an image with a candidate in it, ready to be started."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Final

SOURCE: Final = PurePosixPath("/candidate")
"""Where the whole checkout lies in an image."""
CLOCK: Final = PurePosixPath("/opt/backstop/clock")
"""Where ``time_machine`` lies in an image, for the image's own Python."""
COMPILED: Final = PurePosixPath("/opt/backstop/compiled")
"""Where an image with the label `IS_COMPILED` has what Python makes of its source, all of it."""
IS_COMPILED: Final = "dev.backstop.compiled"


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """An image that holds a candidate and everything that it imports.

    `image` is the image's id (``sha256:…``), never a name that could come to mean another one.
    `agent` is the agent's folder in it, absolute, below `SOURCE`, and `start` the one that it is
    started in; `python` the absolute path of
    the interpreter that has the candidate's packages. `CLOCK` holds ``time_machine`` for it.
    """

    image: str
    agent: PurePosixPath
    start: PurePosixPath
    python: str
