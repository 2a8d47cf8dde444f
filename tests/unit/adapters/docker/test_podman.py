"""What podman 4.3 shows of a container, and that the same weaknesses are seen in it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

from backstop.adapters.bounds import Limits
from backstop.adapters.docker.hardening import Hardened, hardened, weaknesses
from backstop.adapters.docker.podman import WRITABLE, as_file, is_rootless, was_killed
from backstop.adapters.docker.starting import limiting

IMAGE = "sha256:0123"
DROPPED = """
    AUDIT_WRITE CHOWN DAC_OVERRIDE FOWNER FSETID KILL MKNOD NET_BIND_SERVICE NET_RAW SETFCAP
    SETGID SETPCAP SETUID SYS_CHROOT
"""


def asked(*, rootless: bool = False, **built_in: object) -> Hardened:
    return hardened(
        image=IMAGE,
        built_in={"Env": ["LANG=C.UTF-8", "LD_PRELOAD=/evil.so"], **built_in},
        command=["/usr/local/bin/python3", "-c", "pass"],
        path=["/opt/backstop/harness"],
        needed=[PurePosixPath("/candidate")],
        labels={},
        limits=Limits(),
        cpus=1.0,
        seccomp="/some/profile.json",
        podman=True,
        rootless=rootless,
    )


def shown(container: Hardened) -> dict[str, Any]:
    """The container as podman shows it that did all that it was asked for, and as it can."""
    config = dict(container.config)
    host = {
        name: container.host[name]
        for name in ("NetworkMode", "ReadonlyRootfs", "Privileged", "Memory", "MemorySwap")
    }
    host |= {
        name: container.host[name]
        for name in ("NanoCpus", "PidsLimit", "AutoRemove", "PublishAllPorts", "RestartPolicy")
    }
    host |= {
        "Binds": [],
        "CapAdd": [],
        "CapDrop": DROPPED.split(),
        "CgroupnsMode": "",
        "IpcMode": "shareable",
        "LogConfig": {"Type": "none", "Config": None},
        "MaskedPaths": None,
        "OomKillDisable": False,
        "PidMode": "private",
        "ReadonlyPaths": None,
        "SecurityOpt": ["no-new-privileges", "seccomp=/some/profile.json"],
        "Tmpfs": {p: f"{o},rprivate,tmpcopyup" for p, o in container.host["Tmpfs"].items()},
        "UTSMode": "private",
        "Ulimits": [
            {**one, "Name": f"RLIMIT_{one['Name'].upper()}"} for one in container.host["Ulimits"]
        ],
        "UsernsMode": "",
    }
    config["Env"] = [*config["Env"], "TERM=xterm", "container=podman", "HOSTNAME=candidate"]
    config |= {"Image": "localhost/name:latest", "StdinOnce": False}
    return {"Image": IMAGE, "HostConfig": host, "Config": config, "Mounts": []}


def test_a_container_made_as_asked_has_no_weakness() -> None:
    assert weaknesses(shown(asked()), asked()) == []


def test_an_image_that_podman_made_holds_variables_of_its_own_and_serves() -> None:
    made_here = asked(Env=["LANG=C.UTF-8", "TERM=xterm", "container=podman"])
    assert weaknesses(shown(made_here), made_here) == []
    made = shown(made_here)
    made["Config"]["Env"].append("LD_PRELOAD=/evil.so")
    assert weaknesses(made, made_here) == ["Env is not what was asked for"]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("NetworkMode", "slirp4netns"),
        ("ReadonlyRootfs", False),
        ("Privileged", True),
        ("CapDrop", []),
        ("CapDrop", DROPPED.split()[1:]),
        ("CapAdd", ["SYS_ADMIN"]),
        ("IpcMode", "host"),
        ("CgroupnsMode", "host"),
        ("PidMode", "host"),
        ("UTSMode", "host"),
        ("UsernsMode", "host"),
        ("SecurityOpt", ["no-new-privileges"]),
        ("SecurityOpt", ["seccomp=/some/profile.json"]),
        ("SecurityOpt", ["no-new-privileges", "seccomp=/another.json"]),
        ("LogConfig", {"Type": "k8s-file"}),
        ("MaskedPaths", []),
        ("ReadonlyPaths", []),
        ("Tmpfs", {"/opt/backstop/scratch": "rw,nosuid,nodev,rprivate,tmpcopyup"}),
        # What a daemon without root does where control groups are those of version 1.
        ("Memory", 0),
        ("PidsLimit", 0),
        ("NanoCpus", 0),
        ("Ulimits", []),
    ],
)
def test_every_weaker_bound_is_seen(name: str, value: object) -> None:
    made = shown(asked())
    made["HostConfig"][name] = value
    [weakness] = weaknesses(made, asked())
    assert name in weakness


def test_a_daemon_without_rights_sets_no_rlimits_and_the_command_does() -> None:
    made = shown(asked(rootless=True))
    made["HostConfig"]["Ulimits"] = []
    assert weaknesses(made, asked(rootless=True)) == []
    assert len(weaknesses(made, asked())) == 2, "rlimits that nobody set, and another command"
    made["HostConfig"]["Ulimits"] = [{"Name": "RLIMIT_NOFILE", "Soft": 1 << 20, "Hard": 1 << 20}]
    [weakness] = weaknesses(made, asked(rootless=True))
    assert "Ulimits" in weakness, "others than were asked for"


def test_only_a_daemon_that_says_so_runs_without_rights() -> None:
    assert is_rootless({"SecurityOptions": ["name=seccomp,profile=default", "name=rootless"]})
    assert is_rootless({"SecurityOptions": ["name=seccomp,profile=default"], "Rootless": True})
    assert not is_rootless({"SecurityOptions": ["name=seccomp,profile=default"]})
    assert not is_rootless({"SecurityOptions": None, "Rootless": False})


def test_a_container_that_was_killed_from_outside_is_seen() -> None:
    """Podman 4 says `OOMKilled` of none; a process of the container cannot kill the first one."""
    assert was_killed({"OOMKilled": False, "ExitCode": 137})
    assert not was_killed({"OOMKilled": False, "ExitCode": 1})
    assert not was_killed({})


def test_the_command_runs_under_the_rlimits_that_it_took_upon_itself() -> None:
    tell = "import resource as r, sys; print(r.getrlimit(r.RLIMIT_NOFILE), sys.argv[1:])"
    bounds = [{"Name": "nofile", "Soft": 64, "Hard": 64}, {"Name": "core", "Soft": 0, "Hard": 0}]
    command = limiting([sys.executable, "-c", tell, "one", "two"], bounds)
    said = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout
    assert said == "(64, 64) ['one', 'two']\n"


def test_another_image_is_seen() -> None:
    made = {**shown(asked()), "Image": "sha256:4567"}
    assert len(weaknesses(made, asked())) == 1


def test_what_an_image_sets_is_emptied_and_nothing_else_may_be_there() -> None:
    made = shown(asked())
    assert "LD_PRELOAD=" in made["Config"]["Env"]
    made["Config"]["Env"].append("http_proxy=proxy")
    assert weaknesses(made, asked()) == ["Env is not what was asked for"]


def test_no_folder_to_write_in_lies_beside_the_root_but_our_own() -> None:
    mounts = asked(Volumes={"/tmp": {}}).host["Tmpfs"]  # noqa: S108
    for path in WRITABLE:
        assert mounts[path].startswith("ro,noexec,nosuid,nodev,")
    assert not [options for options in mounts.values() if "nr_inodes" in options]


def test_a_profile_lies_in_a_file_while_it_is_needed() -> None:
    with as_file('{"a": 1}') as name:
        assert json.loads(Path(name).read_text(encoding="utf-8")) == {"a": 1}
    assert not Path(name).exists()
