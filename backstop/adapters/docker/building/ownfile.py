"""A checkout's own Dockerfile, where the configuration asks for it: its steps run as root.

With the network, in containers that the daemon makes. What bounds them is memory, time and the
size of what goes in; the threat model says what that costs.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from hashlib import sha256
from time import monotonic
from typing import Any, Final

import docker
from requests.exceptions import RequestException
from urllib3.exceptions import HTTPError

from backstop.adapters.docker.building.context import Context
from backstop.adapters.docker.building.daemon import disk_full, image_id, shown
from backstop.adapters.docker.building.installing import Say
from backstop.adapters.docker.building.recipe import Recipe
from backstop.errors import SandboxError

_LAST: Final = 12


def build_own(
    client: docker.DockerClient,
    context: Context,
    recipe: Recipe,
    *,
    deadline: float,
    labels: Mapping[str, str],
    say: Say,
) -> str:
    """The id of the image that the Dockerfile of `recipe` makes of `context`.

    Raises `SandboxError`: ``requirements-missing`` where there is no such file,
    ``build-failed``, ``build-hangs``, ``disk-full``.
    """
    file = recipe.dockerfile
    assert file is not None  # noqa: S101 - asked for only where there is one
    if file not in context.entries:
        raise SandboxError(
            f"{file!r} is not in the checkout; correct sandbox.build.dockerfile, or remove it to "
            "have the image made by Backstop",
            slug="requirements-missing",
        )
    digest = sha256(f"{context.digest}\0{file}".encode()).hexdigest()
    name = f"backstop-own:{digest[:32]}"
    if (found := image_id(client, name)) is not None:
        return found
    last: deque[str] = deque(maxlen=_LAST)
    for message in _messages(client, context, recipe, name, deadline=deadline, labels=labels):
        last.append(str(message.get("stream", "")))
        say(f"building {file}: {shown(last[-1])[:60]}")
        if "error" in message:
            raise _failed(file, f"{' '.join(last)} {message['error']}")
    if (found := image_id(client, name)) is None:
        raise _failed(file, " ".join(last))
    return found


def _messages(
    client: docker.DockerClient,
    context: Context,
    recipe: Recipe,
    name: str,
    *,
    deadline: float,
    labels: Mapping[str, str],
) -> Iterator[Mapping[str, Any]]:
    """What the daemon says while it builds; it ends the build once nobody listens."""
    api = client.api
    stream = api.build(
        fileobj=context.archive,
        custom_context=True,
        dockerfile=recipe.dockerfile,
        tag=name,
        labels=dict(labels),
        container_limits={"memory": recipe.memory, "memswap": recipe.memory},
        rm=True,
        forcerm=True,
        decode=True,
        timeout=max(1, int(deadline - monotonic())),
    )
    try:
        for message in stream:
            if monotonic() > deadline:
                raise _hangs(recipe)
            yield message
    except (RequestException, HTTPError):
        if monotonic() < deadline - 1:
            raise
        raise _hangs(recipe) from None


def _hangs(recipe: Recipe) -> SandboxError:
    return SandboxError(
        f"{recipe.dockerfile}: not built after {recipe.wall_s:g} s and ended; raise "
        "sandbox.build.wall, or find what it waits for",
        slug="build-hangs",
    )


def _failed(file: str, output: str) -> SandboxError:
    if "no space left on device" in output.lower():
        return disk_full(file)
    return SandboxError(
        f"{file}: does not build: {shown(output)}; correct it, or remove sandbox.build.dockerfile",
        slug="build-failed",
    )
