"""What end-to-end tests share."""

from __future__ import annotations

from tests.docker.fixtures import base_image, docker_client, dockerd, lone_client

__all__ = ["base_image", "docker_client", "dockerd", "lone_client"]
