"""What the daemon is asked for while an image is made, with its faults told in one line."""

from __future__ import annotations

import contextlib
import io
import json
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from time import monotonic
from typing import Any, Final

import docker
from docker.errors import APIError, DockerException, ImageNotFound, NotFound
from docker.types import LogConfig
from docker.utils import parse_repository_tag
from requests.exceptions import RequestException
from urllib3.exceptions import HTTPError

from backstop.errors import SandboxError

_MOST_SAID: Final = 400
_FAULTS: Final = (DockerException, RequestException, HTTPError)
"""What a daemon that fails, or goes away, makes its client raise."""
_FULL: Final = ("no space left on device", "disk quota exceeded")


def shown(text: str) -> str:
    """The end of what pip, a build or the daemon said, as one short line without surprises."""
    plain = "".join(
        char if char.isprintable() else " " if char.isspace() else repr(char)[1:-1]
        for char in text[-8 * _MOST_SAID :]
    )
    line = " ".join(plain.split())
    return line if len(line) <= _MOST_SAID else f"… {line[-_MOST_SAID:]}"


@contextlib.contextmanager
def told(what: str) -> Iterator[None]:
    """Raises a fault of the daemon as `SandboxError`: ``disk-full``, ``docker``."""
    try:
        yield
    except _FAULTS as error:
        said = str(error.explanation if isinstance(error, APIError) else error)
        if any(word in said.lower() for word in _FULL):
            raise disk_full(what) from None
        raise SandboxError(
            f"{what}: the Docker daemon says: {shown(said)}; look at its log, then try once more",
            slug="docker",
        ) from None


def disk_full(what: str) -> SandboxError:
    """What is said where the daemon's disk, or the build's share of it, is full."""
    return SandboxError(
        f"{what}: the disk is full; make room where Docker keeps its images (`docker image prune`)",
        slug="disk-full",
    )


def image_id(client: docker.DockerClient, name: str) -> str | None:
    """The id of an image that the daemon has, by its name; None if it has none."""
    try:
        return str(_inspected(client, name)["Id"])
    except ImageNotFound:
        return None


def _inspected(client: docker.DockerClient, image: str) -> dict[str, Any]:
    found: dict[str, Any] = client.api.inspect_image(image)  # type: ignore[no-untyped-call]  # a decorator of theirs has no types
    return found


def pulled(client: docker.DockerClient, name: str, *, deadline: float) -> str:
    """The id of an image, fetched if the daemon does not have it.

    Raises `SandboxError`: ``base-image``, ``build-hangs``.
    """
    if (found := image_id(client, name)) is not None:
        return found
    repository, tag = parse_repository_tag(name)
    why = "the registry does not have it"
    try:
        for message in client.api.pull(repository, tag=tag or "latest", stream=True, decode=True):
            if monotonic() > deadline:
                raise SandboxError(
                    f"fetching the image {name} took too long and was ended; pull it beforehand, "
                    "or raise sandbox.build.wall",
                    slug="build-hangs",
                )
            why = str(message.get("error", why))
        if (found := image_id(client, name)) is not None:
            return found
    except _FAULTS as error:
        why = str(error.explanation if isinstance(error, APIError) else error)
    raise SandboxError(
        f"the base image {name} is not here and cannot be pulled: {shown(why)}; pull it "
        "beforehand, or name another one in sandbox.build.base",
        slug="base-image",
    )


def labels_of(client: docker.DockerClient, image: str) -> Mapping[str, str]:
    """The labels of an image."""
    return _inspected(client, image)["Config"].get("Labels") or {}


def volumes_of(client: docker.DockerClient, image: str) -> Sequence[str]:
    """The folders of an image that are volumes: what is written there is in no layer."""
    return tuple(_inspected(client, image)["Config"].get("Volumes") or ())


@contextlib.contextmanager
def container(
    client: docker.DockerClient,
    image: str,
    command: Sequence[str],
    *,
    bounds: Mapping[str, Any],
    **options: Any,  # noqa: ANN401 - theirs: create_container has thirty of them
) -> Iterator[str]:
    """A container's id; it is ended and removed with its volumes, whatever happens.

    `bounds` are options of its host config. Nothing that it prints is kept anywhere.
    """
    api = client.api
    host = api.create_host_config(log_config=LogConfig(type="none"), **bounds)
    made = api.create_container(image, list(command), host_config=host, entrypoint=[""], **options)
    try:
        yield str(made["Id"])
    finally:
        with contextlib.suppress(NotFound):
            api.remove_container(made["Id"], v=True, force=True)


def file_of(client: docker.DockerClient, container: str, path: str, *, most: int) -> bytes | None:
    """A small file of a container; None if there is none, or it is none, or it is too large."""
    try:
        stream, _ = client.api.get_archive(container, path)
        packed = bytearray()
        for chunk in stream:
            packed += chunk
            if len(packed) > most + 10_240:
                return None
        with tarfile.open(fileobj=io.BytesIO(packed)) as tar:
            member = tar.next()
            file = tar.extractfile(member) if member is not None and member.isreg() else None
            return None if file is None else file.read(most)
    except tarfile.TarError:
        return None
    except APIError as error:
        if is_gone(error):
            return None
        raise


def is_gone(error: APIError) -> bool:
    """Was a file not there, or replaced while the daemon read it? Podman calls that a failure."""
    return isinstance(error, NotFound) or "no such file or directory" in str(error)


@contextlib.contextmanager
def unhurried(client: docker.DockerClient, seconds: float) -> Iterator[None]:
    """Calls in which the daemon says nothing until it is done: a slow one packs for minutes."""
    usual = client.api.timeout
    client.api.timeout = max(usual, round(seconds))
    try:
        yield
    finally:
        client.api.timeout = usual


def said_of(data: bytes | None) -> dict[str, str]:
    """What the installer left: names and texts, or nothing. A package may have written it."""
    try:
        said = json.loads(data or b"{}")
    except (ValueError, RecursionError):
        return {}
    if not isinstance(said, dict):
        return {}
    return {name: text for name, text in said.items() if isinstance(text, str)}
