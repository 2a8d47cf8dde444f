"""The whole gate in containers: the specimen's verdict, and a second push that needs none."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import docker
import pytest
import yaml

from backstop.adapters.docker.building.images import LABEL
from tests.e2e.command import ROOT, Ran, in_a_process

pytestmark = pytest.mark.docker

SPECIMEN = ROOT / "examples/vendor_onboarding"
SECRET = "s" * 32


def checkout(folder: Path, version: str, base_image: str) -> Path:
    """A repository of one agent, as it is with a version of the specimen."""
    stated = yaml.safe_load((ROOT / "backstop.yaml").read_text(encoding="utf-8"))
    agent = {**stated["agents"]["vendor-onboarding"], "path": "agent", "ledger": "ledger.jsonl"}
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(SPECIMEN / version, folder / "agent", ignore=ignored)
    shutil.copyfile(SPECIMEN / "requirements.txt", folder / "requirements.txt")
    shutil.copyfile(ROOT / "ledgers/vendor-onboarding.jsonl", folder / "ledger.jsonl")
    config = {
        "version": 1,
        "agents": {"vendor-onboarding": agent},
        "sandbox": {"kind": "process", "build": {"base": base_image}},
    }
    (folder / "backstop.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
    return folder


def gated(folder: Path, host: str, *options: str) -> Ran:
    """The gate in a process of its own, as a runner starts it."""
    return in_a_process(
        *("gate", "--config", folder / "head/backstop.yaml", "--base", folder / "base"),
        *("--format", "json", *options),
        DOCKER_HOST=host,
        BACKSTOP_CACHE_KEY=SECRET,
    )


def test_a_gate_in_containers_is_the_gate_in_processes_and_its_replays_are_kept(
    dockerd: str,
    docker_client: docker.DockerClient,
    base_image: str,
    specimen_packages: None,
    tmp_path: Path,
) -> None:
    """Base and candidate are both built and replayed; what was kept needs not even a daemon."""
    checkout(tmp_path / "base", "v1", base_image)
    checkout(tmp_path / "head", "v3", base_image)
    mark = f"{tmp_path.parent.name}.{tmp_path.name}.txt"
    (tmp_path / "head" / mark).touch()
    kept = ("--runtime", "docker", "--cache-dir", str(tmp_path / "cache"))
    first = gated(tmp_path, dockerd, *kept)
    assert (first.code, first.err) == (1, "")
    told = json.loads(first.out)
    assert told["agents"][0]["counts"]["match"] == 39
    assert told["agents"][0]["counts"]["duplicate"] == 3
    local = gated(tmp_path, "unix:///nobody.sock", "--runtime", "none")
    assert json.loads(local.out)["digest"] == told["digest"]
    images = docker_client.images.list(filters={"label": f"{LABEL}=candidate"})
    ours = [str(one.id) for one in images if holds(docker_client, str(one.id), mark)]
    assert len(ours) == 1
    assert not holds(docker_client, ours[0], "ledger.jsonl")
    again = gated(tmp_path, "unix:///nobody.sock", *kept)
    assert again.err == "note: vendor-onboarding: replays of an earlier gate, judged anew\n"
    assert (again.code, json.loads(again.out)["digest"]) == (1, told["digest"])


def holds(client: docker.DockerClient, image: str, name: str) -> bool:
    """Is there a file of this name at the top of the checkout in the image?"""
    try:
        container = client.containers.create(image, network_mode="none")
    except docker.errors.NotFound:
        return False  # somebody else's, gone by now
    try:
        container.get_archive(f"/candidate/{name}")
    except docker.errors.NotFound:
        return False
    finally:
        container.remove(force=True)
    return True
