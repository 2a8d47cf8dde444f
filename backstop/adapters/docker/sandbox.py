"""The `docker` sandbox: a candidate in a container without network, files of ours or powers.

The driver stays outside. It makes the container, has the daemon show what it made, and starts
it only if that is as hard as it was asked for.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import Any, Final

import docker

from backstop import clock
from backstop.adapters.bounds import Limits, harness_options
from backstop.adapters.docker.building.built import (
    CLOCK,
    COMPILED,
    IS_COMPILED,
    SOURCE,
    Built,
)
from backstop.adapters.docker.client import asking
from backstop.adapters.docker.conversation import Conversation
from backstop.adapters.docker.hardening import HARNESS, SCRATCH, Hardened, hardened, weaknesses
from backstop.adapters.docker.podman import as_file, is_rootless
from backstop.adapters.docker.seccomp import profile
from backstop.adapters.docker.starting import command, packed
from backstop.adapters.docker.sweeping import ownership, sweep
from backstop.errors import SandboxError

_SHOWN: Final = 3


class DockerSandbox:
    """Starts candidates in containers of the daemon behind `client`.

    `build` makes, or finds, the image of an agent's folder; it is asked once for each. `bundle`
    writes the harness into a folder, and `module` is what ``python -m`` would run of it. `cpus`
    bounds the processors that one candidate keeps busy. In another `world` than 0 candidates
    meet another time, chance and order.
    """

    def __init__(
        self,
        client: docker.DockerClient,
        build: Callable[[Path], Built],
        limits: Limits | None = None,
        *,
        bundle: Callable[[Path], None],
        module: str,
        cpus: float = 1.0,
        world: int = 0,
        now: Callable[[], datetime] = clock.now,
    ) -> None:
        self._client = client
        self._build = build
        self.limits = limits or Limits()
        self._bundle = bundle
        self._module = module
        self._cpus = cpus
        self._world = world
        self._now = now
        self._lock = threading.Lock()
        self._building: dict[Path, threading.Lock] = {}
        self._built: dict[Path, Built] = {}
        self._files: bytes | None = None
        self._seccomp = ""
        self._is_podman = False
        self._is_rootless = False

    def start(self, agent: Path) -> Conversation:
        """Start the harness on the agent in folder `agent`; it speaks first.

        Raises `SandboxError`: what the build raises, ``image-volume``, ``sandbox-machine``,
        ``sandbox-weaker`` where the daemon does not harden as asked, and ``docker``.
        """
        built, files = self._prepared(agent)
        with contextlib.ExitStack() as while_made:
            seccomp = self._seccomp
            if self._is_podman:
                seccomp = while_made.enter_context(as_file(seccomp))
            asked = self._asked(built, agent, size=len(files), seccomp=seccomp)
            while_made.enter_context(asking("make a candidate's container"))
            body = {**asked.config, "HostConfig": dict(asked.host)}
            api: Any = self._client.api  # its stubs leave this method out
            made = str(api.create_container_from_config(body, None)["Id"])
        conversation = Conversation(
            client=self._client,
            container=made,
            limits=self.limits,
            agent=agent,
            podman=self._is_podman,
        )
        try:
            self._check(made, asked)
            conversation.begin(files)
        except BaseException:
            conversation.close()
            raise
        return conversation

    def _prepared(self, agent: Path) -> tuple[Built, bytes]:
        """The image of an agent and our own files; several candidates may start at once."""
        with self._lock:
            if self._files is None:
                sweep(self._client, now=self._now())
                with asking("say what machine it runs on"):
                    version = self._client.version()
                    self._is_rootless = is_rootless(self._client.info())
                self._is_podman = _is_podman(version)
                self._seccomp = profile(str(version.get("Arch", "")))
                self._files = packed(self._bundle)
            files, building = self._files, self._building.setdefault(agent, threading.Lock())
        with building:
            if agent not in self._built:
                self._built[agent] = self._build(agent)
            return self._built[agent], files

    def _asked(self, built: Built, agent: Path, *, size: int, seccomp: str) -> Hardened:
        with asking(f"show the image of {agent}"):
            api: Any = self._client.api  # its stubs leave this method untyped
            image: dict[str, Any] = api.inspect_image(built.image)
        limits, built_in = self.limits, image.get("Config") or {}
        is_compiled = IS_COMPILED in (built_in.get("Labels") or {})
        return hardened(
            image=built.image,
            built_in=built_in,
            command=command(
                python=built.python,
                size=size,
                folder=str(HARNESS),
                scratch=str(SCRATCH),
                module=self._module,
                options=harness_options(
                    limits,
                    agent=str(built.agent),
                    start=str(built.start),
                    scratch=str(SCRATCH),
                    world=self._world,
                ),
            ),
            path=(str(HARNESS), str(CLOCK)),
            world=self._world,
            variables={"PYTHONPYCACHEPREFIX": str(COMPILED)} if is_compiled else {},
            needed=(SOURCE, HARNESS, CLOCK, SCRATCH, PurePosixPath(built.python).parent),
            labels=ownership(now=self._now(), for_s=limits.wall_s),
            limits=limits,
            cpus=self._cpus,
            seccomp=seccomp,
            podman=self._is_podman,
            rootless=self._is_podman and self._is_rootless,
        )

    def _check(self, container: str, asked: Hardened) -> None:
        with asking("show a candidate's container"):
            found = weaknesses(self._client.api.inspect_container(container), asked)
        if found:
            raise SandboxError(
                f"the daemon made a weaker container than it was asked for, so nothing ran in "
                f"it: {'; '.join(found[:_SHOWN])}; update the daemon",
                slug="sandbox-weaker",
            )


def _is_podman(version: dict[str, Any]) -> bool:
    """Is it podman's daemon, which speaks as Docker's does, with exceptions?"""
    names = {one.get("Name") for one in version.get("Components") or ()}
    return "Podman Engine" in names
