"""What a container is asked to be, and every way in which a daemon could make less of it."""

from __future__ import annotations

import copy
from pathlib import PurePosixPath
from typing import Any

import pytest

from backstop.adapters.bounds import Limits
from backstop.adapters.docker.hardening import HARNESS, SCRATCH, Hardened, hardened, weaknesses
from backstop.errors import SandboxError

IMAGE = "sha256:0123"
NEEDED = (PurePosixPath("/candidate"), HARNESS, SCRATCH, PurePosixPath("/usr/local/bin"))


def asked(
    variables: dict[str, str] | None = None, *, world: int = 0, **built_in: object
) -> Hardened:
    return hardened(
        image=IMAGE,
        built_in=built_in,
        command=["/usr/local/bin/python3", "-c", "pass"],
        path=["/opt/backstop/harness"],
        world=world,
        variables=variables,
        needed=NEEDED,
        labels={"dev.backstop.owner": "me"},
        limits=Limits(memory=1 << 30, wall_s=10.5),
        cpus=1.0,
        seccomp="{}",
    )


def shown(container: Hardened) -> dict[str, Any]:
    """The container as a daemon shows it that did all that it was asked for."""
    return {
        "Config": copy.deepcopy(dict(container.config)),
        "HostConfig": {
            **copy.deepcopy(dict(container.host)),
            "Binds": None,
            "CapAdd": None,
            "Devices": [],
            "PidMode": "",
            "UTSMode": "",
        },
        "Mounts": [],
    }


def test_another_world_has_another_order_of_sets_and_nothing_else() -> None:
    usual, other = (asked(world=world).config["Env"] for world in (0, 1))
    assert set(usual) ^ set(other) == {"PYTHONHASHSEED=0", "PYTHONHASHSEED=1"}


def test_a_container_made_as_asked_has_no_weakness() -> None:
    assert weaknesses(shown(asked()), asked()) == []


HOST: list[tuple[str, object]] = [
    ("NetworkMode", "bridge"),
    ("NetworkMode", "host"),
    ("ReadonlyRootfs", False),
    ("Privileged", True),
    ("Privileged", None),
    ("CapDrop", None),
    ("CapDrop", ["NET_RAW"]),
    ("CapAdd", ["SYS_ADMIN"]),
    ("SecurityOpt", None),
    ("SecurityOpt", ["no-new-privileges:true"]),
    ("SecurityOpt", ["seccomp={}"]),
    ("SecurityOpt", ["no-new-privileges:true", "seccomp=unconfined"]),
    ("SecurityOpt", ["no-new-privileges:true", "seccomp={}", "apparmor=unconfined"]),
    ("PidsLimit", None),
    ("PidsLimit", 0),
    ("Memory", 0),
    ("MemorySwap", -1),
    ("NanoCpus", 0),
    ("IpcMode", "shareable"),
    ("IpcMode", "host"),
    ("CgroupnsMode", "host"),
    ("PidMode", "host"),
    ("UTSMode", "host"),
    ("UsernsMode", "host"),
    ("OomKillDisable", True),
    ("Init", False),
    ("AutoRemove", True),
    ("Tmpfs", None),
    ("Tmpfs", {str(SCRATCH): "rw"}),
    ("LogConfig", {"Type": "json-file", "Config": {}}),
    ("RestartPolicy", {"Name": "always", "MaximumRetryCount": 0}),
    ("Ulimits", None),
    ("Ulimits", [{"Name": "nofile", "Soft": 1 << 20, "Hard": 1 << 20}]),
    ("Binds", ["/:/host"]),
    ("Mounts", [{"Type": "bind", "Source": "/", "Target": "/host"}]),
    ("VolumesFrom", ["other"]),
    ("Devices", [{"PathOnHost": "/dev/kmsg"}]),
    ("DeviceRequests", [{"Driver": "nvidia"}]),
    ("DeviceCgroupRules", ["c *:* rwm"]),
    ("ExtraHosts", ["metadata:169.254.169.254"]),
    ("GroupAdd", ["docker"]),
    ("Links", ["/db"]),
    ("PortBindings", {"80/tcp": [{"HostPort": "80"}]}),
    ("PublishAllPorts", True),
    ("Sysctls", {"net.ipv4.ping_group_range": "0 2147483647"}),
    ("MaskedPaths", []),
    ("MaskedPaths", None),
    ("ReadonlyPaths", []),
]


@pytest.mark.parametrize(("name", "value"), HOST)
def test_every_weaker_bound_is_seen(name: str, value: object) -> None:
    made = shown(asked())
    made["HostConfig"][name] = value
    [weakness] = weaknesses(made, asked())
    assert name in weakness


BOUNDS = sorted(name for name, value in shown(asked())["HostConfig"].items() if value)


@pytest.mark.parametrize("name", ["Privileged", *BOUNDS])
def test_every_bound_that_a_daemon_does_not_know_is_seen(name: str) -> None:
    made = shown(asked())
    del made["HostConfig"][name]
    [weakness] = weaknesses(made, asked())
    assert name in weakness


CONFIG: list[tuple[str, object]] = [
    ("Image", "sha256:4567"),
    ("Entrypoint", ["/evil"]),
    ("Entrypoint", None),
    ("Cmd", None),
    ("Cmd", ["-c", "something else"]),
    ("User", ""),
    ("User", "0:0"),
    ("WorkingDir", "/candidate"),
    ("Tty", True),
    ("StdinOnce", False),
    ("Healthcheck", None),
    ("Healthcheck", {"Test": ["CMD", "touch", "/data/checked"]}),
]


@pytest.mark.parametrize(("name", "value"), CONFIG)
def test_every_other_program_than_ours_is_seen(name: str, value: object) -> None:
    made = shown(asked())
    made["Config"][name] = value
    [weakness] = weaknesses(made, asked())
    assert name in weakness


def test_a_variable_that_nobody_asked_for_is_seen() -> None:
    made = shown(asked())
    made["Config"]["Env"].append("LD_PRELOAD=/evil.so")
    assert weaknesses(made, asked()) == ["Env is not what was asked for"]


@pytest.mark.parametrize(
    ("kind", "seen"), [("volume", True), ("bind", True), ("tmpfs", False), (None, True)]
)
def test_every_mount_but_an_empty_one_in_memory_is_seen(kind: str | None, seen: object) -> None:
    made = shown(asked())
    made["Mounts"] = [{"Type": kind, "Destination": "/data"}]
    assert (weaknesses(made, asked()) == ["mount at /data"]) is seen


def test_an_answer_without_anything_in_it_is_weak() -> None:
    assert len(weaknesses({}, asked())) > 20


def test_what_an_image_sets_is_taken_away_and_ours_is_its_own() -> None:
    image = ["PATH=/evil", "LD_PRELOAD=/evil.so", "PYTHONSTARTUP=/evil.py", "TOKEN=x", "TOKEN=y"]
    made = asked(Env=image, Entrypoint=["/evil"], User="0", Healthcheck={"Test": ["CMD", "x"]})
    environment = made.config["Env"]
    assert made.unset == ("LD_PRELOAD", "PYTHONSTARTUP", "TOKEN")
    assert [one for one in environment if "=" not in one] == list(made.unset)
    assert [one for one in environment if one.startswith("PATH=")] != ["PATH=/evil"]
    assert not [one for one in environment if "evil" in one]
    assert made.config["Entrypoint"] == ["/usr/local/bin/python3"]
    assert made.config["User"] == "65534:65534"
    assert made.config["Healthcheck"] == {"Test": ["NONE"]}


def test_variables_of_ours_come_before_those_of_the_image() -> None:
    made = asked({"PYTHONPYCACHEPREFIX": "/ours"}, Env=["PYTHONPYCACHEPREFIX=/evil"])
    said = [one for one in made.config["Env"] if one.startswith("PYTHONPYCACHEPREFIX")]
    assert said == ["PYTHONPYCACHEPREFIX=/ours"]


def test_a_volume_of_an_image_is_covered_by_a_folder_that_cannot_be_written_to() -> None:
    made = asked(Volumes={"/data": {}, "/var/lib/x": {}})
    covers = {path: made.host["Tmpfs"][path] for path in ("/data", "/var/lib/x")}
    for cover in covers.values():
        assert cover.split(",")[0] == "ro"
    assert set(made.host["Tmpfs"]) == {"/data", "/var/lib/x", str(HARNESS), str(SCRATCH)}


@pytest.mark.parametrize(
    "volume",
    [
        "/",
        "/candidate",
        "/candidate/",
        "//candidate",
        "/candidate/data",
        "/opt",
        "/opt/backstop/harness/backstop_harness",
        "/usr/local",
        "/data/../candidate",
        "data",
    ],
)
def test_a_volume_over_what_is_needed_is_refused(volume: str) -> None:
    with pytest.raises(SandboxError, match="VOLUME") as caught:
        asked(Volumes={volume: {}})
    assert caught.value.slug == "image-volume"


def test_the_memory_of_a_container_is_more_than_the_harness_allots() -> None:
    """What the harness allots runs out first, so an agent fails as it does without a container."""
    made = asked()
    assert made.host["Memory"] > 1 << 30
    assert made.host["Memory"] == made.host["MemorySwap"]


@pytest.mark.parametrize(("name", "wanted"), [("rw", True), ("noexec", True), ("nosuid", True)])
def test_the_scratch_folder_is_bounded_and_runs_nothing(name: str, wanted: object) -> None:
    options = asked().host["Tmpfs"][str(SCRATCH)].split(",")
    assert (name in options) is wanted
    assert {option.partition("=")[0] for option in options} >= {"size", "nr_inodes", "nodev"}


def test_a_candidate_whose_driver_is_dead_has_so_much_processor_time_and_no_more() -> None:
    [seconds] = [one for one in asked().host["Ulimits"] if one["Name"] == "cpu"]
    assert seconds["Hard"] == 11
