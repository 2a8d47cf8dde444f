"""Agents that attack their replay from inside, in the whole sandbox: none of them ships."""

from __future__ import annotations

import shutil
from functools import cache
from pathlib import Path

import docker
import pytest

from backstop.adapters.bounds import Limits
from backstop.adapters.docker.building.images import ImageBuilder
from backstop.adapters.docker.building.recipe import Recipe
from backstop.adapters.docker.sandbox import DockerSandbox
from backstop.core.ledgerfile import Ledger, read
from backstop.core.verdict import Decision
from backstop.errors import SandboxError, WireError
from backstop.replay.bundle import MODULE, write_harness
from backstop.replay.plan import Plan
from backstop.replay.service import replay
from tests.e2e.replaying import findings, verdict

pytestmark = pytest.mark.docker

ROOT = Path(__file__).parents[2]
SPECIMEN = ROOT / "examples" / "vendor_onboarding"
MALICE = ROOT / "tests" / "docker" / "agents" / "malice.py"
ORDERS_AGAIN = {"DUPLICATE relabelled": 3}


@cache
def ledger() -> Ledger:
    path = ROOT / "ledgers/vendor-onboarding.jsonl"
    return read(path.read_bytes(), name=path.name)


class Gate:
    """Replays checkouts of the specimen's worst version in containers."""

    def __init__(self, client: docker.DockerClient, base: str, folder: Path) -> None:
        self.client = client
        self.base = base
        self.folder = folder

    def decision(self, way: str) -> Decision | None:
        """What is decided of v3 with this malice in it; None if it could not be replayed."""
        checkout = self.folder / (way or "honest")
        shutil.copytree(SPECIMEN / "v3", checkout / "v3")
        shutil.copy(SPECIMEN / "requirements.txt", checkout)
        if way:
            with (checkout / "v3" / "agent.py").open("a", encoding="utf-8") as file:
                file.write(f"\n{MALICE.read_text(encoding='utf-8')}\n{way}()\n")
        builder = ImageBuilder(self.client, Recipe(base=self.base), checkouts=[checkout])
        sandbox = DockerSandbox(
            self.client,
            builder.build,
            Limits(silence_s=60, wall_s=240),
            bundle=write_harness,
            module=MODULE,
        )
        plan = Plan(
            header=ledger().header,
            events=ledger().events,
            ledger=ledger().digest,
            candidate=checkout / "v3",
            version=way,
            declarations={},
        )
        try:
            found = verdict(ledger(), replay(plan, sandbox))
        except (SandboxError, WireError):
            return None
        assert found.decision is not Decision.BLOCK or findings(found) == ORDERS_AGAIN
        return found.decision


@pytest.fixture(scope="module")
def gate(
    docker_client: docker.DockerClient,
    base_image: str,
    specimen_packages: None,
    tmp_path_factory: pytest.TempPathFactory,
) -> Gate:
    return Gate(docker_client, base_image, tmp_path_factory.mktemp("checkouts"))


def test_the_control_without_malice_it_is_blocked(gate: Gate) -> None:
    assert gate.decision("") is Decision.BLOCK


@pytest.mark.parametrize("way", ["forge", "kill", "leave", "rewrite"])
def test_malice_does_not_turn_it_into_a_pass(gate: Gate, way: str) -> None:
    assert gate.decision(way) in {Decision.BLOCK, Decision.INCONCLUSIVE, None}
