"""What end-to-end tests share."""

from __future__ import annotations

from tests.docker.fixtures import (
    base_image,
    docker_client,
    dockerd,
    lone_client,
    specimen_packages,
)
from tests.e2e.building import building, small_base, small_index

__all__ = [
    "base_image",
    "building",
    "docker_client",
    "dockerd",
    "lone_client",
    "small_base",
    "small_index",
    "specimen_packages",
]
