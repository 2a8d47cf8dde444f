"""Containers in the daemon's own words, for tests that need them exactly so."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import docker


def run(client: docker.DockerClient, config: Mapping[str, Any]) -> bytes:
    """What a container of this configuration prints; it is removed, volumes and all."""
    made = client.api.create_container_from_config(dict(config))  # type: ignore[no-untyped-call]
    container = client.containers.get(made["Id"])
    try:
        container.start()
        container.wait(timeout=60)
        said: bytes = container.logs()
        return said
    finally:
        container.remove(force=True, v=True)
