"""How an image is made: what a configuration may choose, and the bounds of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from backstop.adapters.docker.building.context import Caps


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """What an image begins with, what is installed into it from where, and how much that takes.

    `base` None is ``python:X.Y-slim`` of `python`. `requirements` and `dockerfile` are paths
    from the checkout's top; with a `dockerfile` its image is the base, and nothing but our clock
    is installed. Without `compiled` each start compiles anew what it imports: for images that
    are hardly started. `index` and `proxy` may hold a password. Sizes are bytes, `wall_s` is
    seconds for the whole build.
    """

    python: str = "3.12"
    base: str | None = None
    requirements: str | None = None
    index: str | None = field(default=None, repr=False)
    proxy: str | None = field(default=None, repr=False)
    wheels_only: bool = True
    compiled: bool = True
    dockerfile: str | None = None
    memory: int = 2 << 30
    wall_s: float = 600.0
    disk: int = 6 << 30
    pids: int = 256
    cpus: float = 2.0
    ruling: Path | None = None
    caps: Caps = field(default_factory=Caps)

    @property
    def base_name(self) -> str:
        """The name of the image that it begins with."""
        return self.base or f"python:{self.python}-slim"
