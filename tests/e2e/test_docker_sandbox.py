"""The `docker` sandbox: the same verdicts as without a container, and nothing left of any."""

from __future__ import annotations

import contextlib
import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any

import docker
import msgspec
import pytest
from docker.models.containers import Container

from backstop.adapters.bounds import Limits
from backstop.adapters.docker.building.built import Built
from backstop.adapters.docker.building.images import ImageBuilder
from backstop.adapters.docker.building.recipe import Recipe
from backstop.adapters.docker.conversation import Conversation
from backstop.adapters.docker.sandbox import DockerSandbox
from backstop.adapters.docker.sweeping import OWNER, sweep
from backstop.adapters.owners import this_process
from backstop.clock import now
from backstop.core.ledgerfile import Ledger, read
from backstop.core.verdict import AgentVerdict, Decision, content_digest
from backstop.errors import SandboxError, WireError
from backstop.ports import Sandbox
from backstop.replay.bundle import MODULE, write_harness
from backstop.replay.service import Replay
from tests.e2e.replaying import SANDBOX, findings, replayed, verdict

pytestmark = pytest.mark.docker

ROOT = Path(__file__).parents[2]
AGENT = Path("agent")
LIMITS = Limits(memory=128 << 20, silence_s=60, wall_s=60)
ECHO = "import sys\nfor line in sys.stdin: print(line, end='', flush=True)"
DEAF = "import time\nprint('{}', flush=True)\ntime.sleep(600)"


# The specimen


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout that holds the specimen and nothing else."""
    folder = tmp_path_factory.mktemp("checkout")
    ignore = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "examples/vendor_onboarding", folder / "specimen", ignore=ignore)
    return folder


@pytest.fixture(scope="module")
def in_docker(
    docker_client: docker.DockerClient, base_image: str, specimen_packages: None, checkout: Path
) -> Sandbox:
    """The sandbox, with the specimen's image made as the gate makes it."""
    images = ImageBuilder(docker_client, Recipe(base=base_image), checkouts=[checkout])
    return DockerSandbox(docker_client, images.build, bundle=write_harness, module=MODULE)


@cache
def ledger() -> Ledger:
    """The committed ledger."""
    path = ROOT / "ledgers/vendor-onboarding.jsonl"
    return read(path.read_bytes(), name=path.name)


Judge = Callable[[str], tuple[Replay, AgentVerdict]]


@pytest.fixture(scope="module")
def inside(in_docker: Sandbox, checkout: Path) -> Judge:
    """A version of the specimen, replayed in a container: once in this file."""
    return cache(lambda version: judged(in_docker, checkout / "specimen" / version))


def judged(sandbox: Sandbox, agent: Path) -> tuple[Replay, AgentVerdict]:
    done = replayed(ledger(), agent, sandbox=sandbox, workers=2)
    return done, verdict(ledger(), done)


@pytest.mark.parametrize(
    ("version", "decision", "matches", "kinds"),
    [
        ("v1", Decision.PASS, 42, {}),
        ("v2", Decision.PASS, None, {"EXTRA new": 1, "MISSING dropped": 1, "MUTATED changed": 1}),
        ("v3", Decision.BLOCK, 39, {"DUPLICATE relabelled": 3}),
    ],
)
def test_a_container_changes_nothing_of_a_verdict(
    inside: Judge,
    checkout: Path,
    version: str,
    decision: Decision,
    matches: int | None,
    kinds: dict[str, int],
) -> None:
    held, found = inside(version)
    free, expected = judged(SANDBOX, checkout / "specimen" / version)
    assert found == expected
    assert digest(found) == digest(expected)
    assert (held.intents, held.runs, held.logs) == (free.intents, free.runs, free.logs)
    assert held.ready.isolation == free.ready.isolation == ["audit", "landlock", "seccomp"]
    assert found.decision is decision
    assert findings(found) == kinds
    assert matches is None or found.counts["match"] == matches


def test_verdicts_that_differ_have_other_digests(inside: Judge) -> None:
    assert digest(inside("v1")[1]) != digest(inside("v3")[1])


def digest(found: AgentVerdict) -> str:
    return content_digest(msgspec.to_builtins(found))


# A program of the test's own in place of the harness


Talk = Callable[..., Conversation]


@pytest.fixture
def talk(docker_client: docker.DockerClient, base_image: str) -> Iterator[Talk]:
    """Starts programs; afterwards no container of ours may be left."""

    with contextlib.ExitStack() as open_ones:

        def start(script: str, *, limits: Limits = LIMITS, **built: str) -> Conversation:
            sandbox = talking(docker_client, base_image, script, limits=limits, **built)
            return open_ones.enter_context(sandbox.start(AGENT))

        yield start
    assert own(docker_client) == []


def talking(
    client: docker.DockerClient,
    base: str,
    script: str,
    *,
    limits: Limits = LIMITS,
    python: str = "/usr/local/bin/python3",
    image: str = "",
) -> DockerSandbox:
    built = Built(
        image=image or str(client.images.get(base).id),
        agent=PurePosixPath("/candidate/agent"),
        start=PurePosixPath("/candidate"),
        python=python,
    )

    def write(folder: Path) -> None:
        folder.mkdir(parents=True)
        (folder / "talker.py").write_text(script, encoding="utf-8")

    return DockerSandbox(client, lambda _: built, limits, bundle=write, module="talker")


def own(client: docker.DockerClient, process: str = "") -> list[Container]:
    label = f"{OWNER}={process or this_process()}"
    return list(client.containers.list(all=True, filters={"label": label}))


def said(conversation: Conversation) -> Any:
    line = conversation.receive()
    assert line is not None
    return json.loads(line)


def test_lines_go_in_and_come_out_as_they_are(talk: Talk) -> None:
    with talk(ECHO) as conversation:
        for line in (b"{}\n", b"x" * 1_000_000 + b"\n", b"\n", "é\u2028\r\n".encode()):
            conversation.send(line)
            assert conversation.receive() == line[:-1]


def test_what_is_printed_is_noise_and_never_a_line(talk: Talk) -> None:
    with talk("import sys\nprint('noise', file=sys.stderr)\nprint('{}')") as conversation:
        assert conversation.receive() == b"{}"
        assert conversation.receive() is None
    assert conversation.noise == "noise\n"


def test_several_candidates_talk_at_once(
    docker_client: docker.DockerClient, base_image: str
) -> None:
    sandbox = talking(docker_client, base_image, ECHO)

    def ask(number: int) -> bytes | None:
        with sandbox.start(Path(f"agent-{number % 2}")) as conversation:
            conversation.send(b"%d\n" % number)
            return conversation.receive()

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(ask, range(4))) == [b"0", b"1", b"2", b"3"]
    assert own(docker_client) == []


def test_a_candidate_that_ends_early_has_said_all_that_it_had_to_say(talk: Talk) -> None:
    with talk("print('{}')") as conversation:
        assert conversation.receive() == b"{}"
        assert conversation.receive() is None
        with pytest.raises(SandboxError, match="is gone") as caught:
            flood(conversation)
    assert caught.value.slug == "agent-exited"


def flood(conversation: Conversation) -> None:
    while True:
        conversation.send(b"{}\n" * 1000)


@pytest.mark.parametrize(
    ("script", "told"),
    [
        ("print('x' * 300_000, end='')", "more than 100000 bytes"),
        ("print('{\"t\":', end='')", "in the middle of a line"),
    ],
)
def test_a_candidate_that_breaks_the_framing_is_refused(talk: Talk, script: str, told: str) -> None:
    limits = Limits(line=100_000)
    with talk(script, limits=limits) as conversation, pytest.raises(WireError, match=told):
        drain(conversation)


def drain(conversation: Conversation) -> None:
    while conversation.receive() is not None:
        pass


def test_a_candidate_that_does_not_listen_is_ended_as_one_that_hangs(talk: Talk) -> None:
    with talk(DEAF, limits=Limits(silence_s=3)) as conversation:
        assert conversation.receive() == b"{}"
        with pytest.raises(SandboxError, match="said nothing for 3 s") as caught:
            flood(conversation)
    assert caught.value.slug == "agent-hangs"


def test_a_candidate_sees_an_environment_of_its_own(talk: Talk) -> None:
    script = (
        "import json, os, sys\n"
        "print(json.dumps([dict(os.environ), os.getuid(), os.getgroups(), os.getcwd()]))"
    )
    with talk(script) as conversation:
        environment, user, groups, folder = said(conversation)
    assert sorted(environment) == [
        *("ADK_DISABLE_LOAD_DOTENV", "HOME", "HOSTNAME", "LC_ALL", "OTEL_SDK_DISABLED", "PATH"),
        *("PYTHONHASHSEED", "PYTHONPATH", "PYTHONUNBUFFERED", "PYTHONUTF8", "PYTHONWARNINGS"),
        *("TMPDIR", "TZ"),
    ]
    assert (user, [one for one in groups if one != user], folder) == (
        65534,
        [],
        environment["HOME"],
    )


def test_an_interpreter_that_is_not_in_the_image_is_no_candidate(talk: Talk) -> None:
    with pytest.raises(SandboxError, match=r"is gone") as caught:
        flood(talk(ECHO, python="/nowhere/python"))
    assert caught.value.slug == "agent-exited"


def test_an_image_that_is_not_there_is_one_line(talk: Talk) -> None:
    with pytest.raises(SandboxError, match="show the image") as caught:
        talk(ECHO, image=f"sha256:{'0' * 64}")
    assert caught.value.slug == "docker"


# What is left


def test_a_container_is_removed_whatever_ends_the_conversation(
    talk: Talk, docker_client: docker.DockerClient
) -> None:
    def interrupted() -> None:
        with talk(DEAF):
            assert len(own(docker_client)) == 1
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert own(docker_client) == []


Dying = subprocess.Popen[str]


@pytest.fixture
def dying(
    dockerd: str, docker_client: docker.DockerClient, base_image: str
) -> Iterator[Callable[[], Dying]]:
    """Starts drivers, each with a candidate that does not listen."""
    started: list[Dying] = []

    def start() -> Dying:
        url = dockerd
        command = [
            sys.executable,
            "-m",
            "tests.e2e.dying",
            url,
            base_image,
            "/usr/local/bin/python3",
        ]
        driver = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)
        started.append(driver)
        return driver

    yield start
    for driver in started:
        driver.kill()
        with driver:
            driver.wait()
    sweep(docker_client, now=now())


def name_of(driver: Dying) -> str:
    assert driver.stdout is not None
    return driver.stdout.readline().strip()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_driver_that_is_told_to_stop_takes_its_containers_along(
    dying: Callable[[], Dying], docker_client: docker.DockerClient, number: int
) -> None:
    driver = dying()
    name = name_of(driver)
    assert len(own(docker_client, name)) == 1
    driver.send_signal(number)
    driver.wait(timeout=60)
    assert own(docker_client, name) == []
    assert driver.returncode != 0


def test_what_a_killed_driver_left_is_removed_by_the_next_one_and_nothing_else(
    dying: Callable[[], Dying], docker_client: docker.DockerClient, base_image: str
) -> None:
    killed, alive = dying(), dying()
    gone, kept = name_of(killed), name_of(alive)
    assert len(own(docker_client, gone)) == 1
    killed.kill()
    killed.wait()
    with talking(docker_client, base_image, ECHO).start(AGENT) as conversation:
        assert own(docker_client, gone) == []
        assert len(own(docker_client, kept)) == 1
        conversation.send(b"{}\n")
        assert conversation.receive() == b"{}"
    assert len(own(docker_client, kept)) == 1


def test_a_volume_of_an_image_is_none_of_the_hosts_and_cannot_be_written_to(
    talk: Talk, docker_client: docker.DockerClient, base_image: str
) -> None:
    made = docker_client.containers.create(base_image, ["true"])
    image = made.commit(conf={"Volumes": {"/data": {}}, "Entrypoint": ["/evil"], "User": "0:0"})
    made.remove()
    script = (
        "import json\n"
        "try: open('/data/x', 'w'); told = 'written'\n"
        "except OSError as error: told = type(error).__name__ + ' ' + str(error.errno)\n"
        "print(json.dumps(told))"
    )
    try:
        with talk(script, image=str(image.id)) as conversation:
            assert said(conversation) in {"PermissionError 13", "OSError 30"}
            [container] = own(docker_client)
            assert container.attrs["Mounts"] == []
    finally:
        docker_client.images.remove(str(image.id))
