"""Candidates that take, fill, flood, hang, leave and lie, in the docker sandbox.

Each is ended by the limit that it runs into, is told to be the kind of fault that it is, is
never a pass, and leaves nothing behind. What a program has to do for that it does as the
harness would, so nothing of ours inside holds it back.
"""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any

import docker
import pytest

from backstop.adapters.bounds import Limits
from backstop.adapters.docker.building.built import Built
from backstop.adapters.docker.sandbox import DockerSandbox
from backstop.core.ledgerfile import read
from backstop.core.verdict import Decision
from backstop.errors import BackstopError, SandboxError, WireError
from backstop.replay.plan import Plan
from backstop.replay.service import replay
from tests.docker.base_image import interpreter, make
from tests.docker.containers import run
from tests.e2e.replaying import verdict

pytestmark = pytest.mark.docker

ROOT = Path(__file__).parents[2]
ABUSE = ROOT / "tests" / "docker" / "agents" / "abuse.py"
WORD = "backstop-only-outside"
MIB = 1 << 20
SLOW = int(os.environ.get("BACKSTOP_TEST_SLOW", "1"))
"""How much more time a machine needs that emulates its processor."""

PATIENT = Limits(
    line=MIB,
    said=8 * MIB,
    printed=8 * MIB,
    memory=64 * MIB,
    files=256,
    file_bytes=16 * MIB,
    silence_s=60 * SLOW,
    wall_s=60 * SLOW,
)
"""For programs that end by themselves, on however busy a machine."""
SILENT = replace(PATIENT, silence_s=3 * SLOW)
SHORT = replace(PATIENT, wall_s=3 * SLOW)

OF_THE_IMAGE = {"LD_PRELOAD", "PYTHONHOME", "PYTHONSTARTUP", "TOKEN"}


@dataclass
class Abused:
    """What a program said before it ended, and what it was ended for."""

    said: list[Any]
    fault: BackstopError | None


@pytest.fixture(scope="module")
def image(lone_client: docker.DockerClient) -> str:
    """An image that brings along whatever an image can bring."""
    base_image = make(lone_client, interpreter())
    made = lone_client.containers.create(base_image, ["true"])
    listed = ["sh", "-c", "ls /usr/lib/*/libutil.so.1"]
    library = lone_client.containers.run(base_image, listed, remove=True)
    planted = made.commit(
        conf={
            "Env": [
                "PATH=/nowhere",
                f"LD_PRELOAD={library.decode().strip()}",
                "PYTHONSTARTUP=/candidate/start.py",
                "PYTHONHOME=/nowhere",
                f"TOKEN={WORD}-of-the-image",
            ],
            "Entrypoint": ["/bin/false"],
            "Cmd": ["/bin/false"],
            "User": "0:0",
            "Volumes": {"/data": {}},
            "Healthcheck": {"Test": ["CMD", "/bin/true"], "Interval": 1_000_000_000},
            "StopSignal": "SIGCONT",
        }
    )
    made.remove()
    return str(planted.id)


def bundle(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(ABUSE, folder / "abuse.py")


Start = Callable[[Limits], DockerSandbox]


@pytest.fixture(scope="module")
def within(lone_client: docker.DockerClient, image: str) -> Start:
    """The sandbox with these limits."""

    def sandbox(limits: Limits) -> DockerSandbox:
        return DockerSandbox(
            lone_client,
            lambda agent: Built(
                image=image,
                agent=PurePosixPath("/candidate") / agent.name,
                start=PurePosixPath("/candidate"),
                python="/usr/local/bin/python3",
            ),
            limits,
            bundle=bundle,
            module="abuse",
        )

    return sandbox


@pytest.fixture(autouse=True)
def nothing_is_left(lone_client: docker.DockerClient, image: str) -> Iterator[None]:
    def there() -> list[list[str]]:
        return [
            sorted(str(one.id) for one in lone_client.containers.list(all=True)),
            sorted(str(one.id) for one in lone_client.images.list(all=True)),
            sorted(str(one.id) for one in lone_client.volumes.list()),
        ]

    before = there()
    yield
    assert there() == before


def abused(sandbox: DockerSandbox, name: str) -> Abused:
    """What a program does when somebody listens to it to the end."""
    said: list[Any] = []
    try:
        with sandbox.start(Path(name)) as conversation:
            while (line := conversation.receive()) is not None:
                said.append(line)
    except (SandboxError, WireError) as fault:
        return Abused(said=said, fault=fault)
    return Abused(said=said, fault=None)


def slug(found: Abused) -> str | None:
    """What kind of fault it was ended for."""
    return found.fault.slug if found.fault else None


def told(found: Abused) -> dict[str, Any]:
    """The first thing that a program said, which is about itself."""
    first: dict[str, Any] = json.loads(found.said[0])
    return first


@pytest.mark.parametrize("name", ["hang", "never_reads"])
def test_whatever_says_nothing_is_ended(within: Start, name: str) -> None:
    assert slug(abused(within(SILENT), name)) == "agent-hangs"


@pytest.mark.parametrize("name", ["close_everything", "drip", "ignore_signals"])
def test_whatever_does_not_end_is_ended(within: Start, name: str) -> None:
    assert slug(abused(within(SHORT), name)) == "agent-hangs"


@pytest.mark.parametrize("name", ["flood_out", "flood_err"])
def test_a_flood_on_either_stream_is_cut_off(within: Start, name: str) -> None:
    found = abused(within(PATIENT), name)
    assert slug(found) == "agent-floods"
    assert sum(map(len, found.said)) <= PATIENT.said


def test_a_line_without_an_end_is_cut_off(within: Start) -> None:
    assert isinstance(abused(within(PATIENT), "flood_out_without_a_line").fault, WireError)


@pytest.mark.parametrize("name", ["fork_bomb", "thread_bomb"])
def test_a_bomb_meets_its_bound_and_is_ended(within: Start, name: str) -> None:
    found = abused(within(SHORT), name)
    assert 0 < told(found)["started"] < 256
    assert slug(found) == "agent-hangs"


@pytest.mark.parametrize(
    ("name", "ended"), [("memory", "agent-memory"), ("memory_of_children", "agent-hangs")]
)
def test_memory_beyond_its_bound_ends_whoever_takes_it(
    within: Start, name: str, ended: str
) -> None:
    # Where children take it, they are ended and others come: then the time runs out.
    assert slug(abused(within(SHORT), name)) in {"agent-memory", ended}


def test_scratch_is_bounded_in_bytes_and_in_files(within: Start) -> None:
    found = told(abused(within(PATIENT), "fill_scratch"))
    assert 0 < found["written"] <= 64 * MIB
    assert 0 < found["files"] <= 4096
    assert found["errors"] == [errno.ENOSPC, errno.ENOSPC]


def test_nothing_else_can_be_filled(within: Start) -> None:
    found = told(abused(within(PATIENT), "fill_others"))
    assert set(found["written"].values()) == {0}
    assert found["segments"] == 0


def test_an_orphan_does_not_hold_the_wire_open(within: Start) -> None:
    found = abused(within(PATIENT), "orphan")
    assert (told(found), found.fault) == ({"left": True}, None)


def test_the_image_decides_nothing_about_how_it_runs(within: Start) -> None:
    found = told(abused(within(PATIENT), "look_around"))
    assert found["preloaded"] is False
    assert set(found["uid"]) == {"65534"}
    assert set(found["capabilities"]) == {"0" * 16}
    assert (found["nnp"], found["seccomp"]) == ("1", "2")
    assert not OF_THE_IMAGE & set(found["environment"])
    assert found["argv"][0] == "/usr/local/bin/python3"


def test_the_environment_inside_is_known_by_name(within: Start) -> None:
    found = set(told(abused(within(PATIENT), "look_around"))["environment"])
    assert {name for name in found if not name.startswith("PYTHON")} == {
        "ADK_DISABLE_LOAD_DOTENV",
        "HOME",
        "HOSTNAME",
        "LC_ALL",
        "OTEL_SDK_DISABLED",
        "PATH",
        "TMPDIR",
        "TZ",
    }


def test_a_secret_is_in_no_file_and_no_process(within: Start) -> None:
    found = told(abused(within(PATIENT), "look_for_secrets"))
    assert found["seen"] > 1000
    assert found["found"] == []


def test_all_this_is_there_in_a_container_that_is_not_hardened(
    lone_client: docker.DockerClient, image: str
) -> None:
    """The control: what was not found above is found here, and what was full is not."""
    found: dict[str, Any] = {}
    for name in ("look_around", "look_for_secrets", "fill_others"):
        program = ["-c", ABUSE.read_text(encoding="utf-8"), "--agent", f"/{name}", "--scratch", "/"]
        free = {"Image": image, "Entrypoint": ["/usr/local/bin/python3"], "Cmd": program}
        found |= json.loads(run(lone_client, {**free, "Env": ["PYTHONHOME="]}))
    assert found["preloaded"] is True
    assert "TOKEN" in found["environment"]
    assert "/proc/1/environ" in found["found"]
    assert found["written"]["/data"] > 0
    assert found["written"]["/dev/shm"] > 0  # noqa: S108 - in the container
    assert found["segments"] > 0


@pytest.mark.parametrize(
    "name", ["hang", "memory", *re.findall(r"^def (forge_\w+)", ABUSE.read_text(), re.MULTILINE)]
)
def test_what_is_no_replay_is_never_a_pass(within: Start, name: str) -> None:
    path = ROOT / "ledgers/vendor-onboarding.jsonl"
    ledger = read(path.read_bytes(), name=path.name)
    plan = Plan(
        header=ledger.header,
        events=ledger.events,
        ledger=ledger.digest,
        candidate=Path(name),
        version=name,
        declarations={},
    )
    try:
        played = replay(plan, within(SILENT))
    except (SandboxError, WireError):
        return  # exit code 2
    assert verdict(ledger, played).decision is Decision.INCONCLUSIVE
