"""A runner of our own: it runs a container action as GitHub's does, on a daemon that is given.

The same mounts, the same variables with the same translation of paths, the workspace as working
folder and no user. Afterwards it reads log, outputs and summary as the runner would.
"""

from __future__ import annotations

import json
import shutil
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import docker
from docker.models.containers import Container

from tests.action_runner.commands import Log, read_log, read_pairs

FILES: Final = {
    "path": "add_path",
    "env": "set_env",
    "step_summary": "step_summary",
    "state": "save_state",
    "output": "set_output",
}
REPOSITORY: Final = "octo/repo"
RUN_URL: Final = "https://github.com/octo/repo/actions/runs/4242"
_LABEL: Final = "dev.backstop.tests"


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One use of the action: the event, the inputs, and what the workflow sets besides.

    `event` None is a runner whose event file is not there. `socket` None mounts no daemon.
    """

    workspace: Path
    event_name: str
    event: Mapping[str, Any] | None
    api_url: str
    graphql_url: str = ""
    ref: str = "refs/heads/main"
    sha: str = "f" * 40
    inputs: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    socket: Path | None = None
    run_number: int = 7
    run_attempt: int = 1
    run_id: int = 4242


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """What became of a step. `raw` is its output as it was written."""

    exit_code: int
    log: Log
    outputs: Mapping[str, str]
    summary: str
    raw: str
    workspace: Path


class ActionRunner:
    """Runs steps with one action image, each in folders of its own below `root`."""

    def __init__(self, client: docker.DockerClient, *, image: str, root: Path) -> None:
        self._client = client
        self._image = image
        self._root = root

    def run(self, step: Step, *, wait_s: float = 900) -> Ended:
        """Run a step to its end."""
        desk = Desk.at(self._root / uuid.uuid4().hex[:8], step)
        container = self.start(step, desk)
        try:
            code = int(container.wait(timeout=wait_s)["StatusCode"])
            raw = container.logs().decode("utf-8", "replace")
        finally:
            container.remove(force=True, v=True)
        return desk.ended(code, raw)

    def start(self, step: Step, desk: Desk) -> Container:
        """Start a step, for a test that does something to it while it runs."""
        mounts = [f"{host}:{inside}" for host, inside in desk.mounts]
        if step.socket is not None:
            mounts.append(f"{step.socket}:/var/run/docker.sock")
        return self._client.containers.run(
            self._image,
            detach=True,
            environment=desk.environment(step),
            labels={_LABEL: "action"},
            # The fake GitHub listens on this machine's loopback.
            network_mode="host",
            volumes=mounts,
            working_dir="/github/workspace",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """A job's folders on the host."""

    workspace: Path
    temp: Path
    files: Mapping[str, Path]

    @staticmethod
    def at(root: Path, step: Step) -> Desk:
        """Lay the folders out, with the step's workspace copied and its event written."""
        temp, workspace = root / "_work" / "_temp", root / "_work" / "repo" / "repo"
        shutil.copytree(step.workspace, workspace, symlinks=True)
        for name in ("_github_home", "_github_workflow", "_runner_file_commands"):
            (temp / name).mkdir(parents=True)
        if step.event is not None:
            (temp / "_github_workflow" / "event.json").write_text(json.dumps(step.event))
        files: dict[str, Path] = {}
        for name, prefix in FILES.items():
            files[name] = temp / "_runner_file_commands" / f"{prefix}_{uuid.uuid4()}"
            files[name].touch()
        return Desk(workspace=workspace, temp=temp, files=files)

    @property
    def mounts(self) -> list[tuple[Path, str]]:
        """Where each folder is seen inside; the order is the runner's."""
        return [
            (self.temp, "/github/runner_temp"),
            (self.temp / "_github_home", "/github/home"),
            (self.temp / "_github_workflow", "/github/workflow"),
            (self.temp / "_runner_file_commands", "/github/file_commands"),
            (self.workspace, "/github/workspace"),
        ]

    def environment(self, step: Step) -> dict[str, str]:
        """Every variable of the step; host paths become those inside, but RUNNER_WORKSPACE."""
        said = {
            **{f"INPUT_{n.upper().replace(' ', '_')}": v for n, v in step.inputs.items()},
            **step.environment,
            **_variables(step),
            **{f"GITHUB_{name.upper()}": str(path) for name, path in self.files.items()},
            "GITHUB_EVENT_PATH": str(self.temp / "_github_workflow" / "event.json"),
            "GITHUB_WORKSPACE": str(self.workspace),
            "HOME": str(self.temp / "_github_home"),
            "RUNNER_TEMP": str(self.temp),
        }
        translated = {name: self._inside(value) for name, value in said.items()}
        return translated | {"RUNNER_WORKSPACE": str(self.workspace.parent)}

    def here(self, step: Step) -> dict[str, str]:
        """The variables with the paths of this machine: for a step without a container."""
        found = self.environment(step)
        for name, value in found.items():
            for host, inside in self.mounts:
                if value == inside or value.startswith(f"{inside}/"):
                    found[name] = str(host) + value[len(inside) :]
        return found

    def ended(self, code: int, raw: str) -> Ended:
        """What the runner takes from the step's files and output."""
        return Ended(
            exit_code=code,
            log=read_log(raw),
            outputs=read_pairs(self.files["output"].read_text()),
            summary=self.files["step_summary"].read_text(),
            raw=raw,
            workspace=self.workspace,
        )

    def _inside(self, value: str) -> str:
        # The most exact folder first: all of them lie below the temporary one.
        for host, inside in sorted(self.mounts, key=lambda pair: -len(str(pair[0]))):
            if value == str(host) or value.startswith(f"{host}/"):
                return inside + value[len(str(host)) :]
        return value


def _variables(step: Step) -> dict[str, str]:
    return {
        "ACTIONS_CACHE_URL": "https://cache.invalid/",
        "ACTIONS_RESULTS_URL": "https://results.invalid/",
        "ACTIONS_RUNTIME_TOKEN": "runtime-token-of-the-job",
        "ACTIONS_RUNTIME_URL": "https://runtime.invalid/",
        "CI": "true",
        "GITHUB_ACTION": "__org_backstop",
        "GITHUB_ACTIONS": "true",
        "GITHUB_ACTION_REF": "v1",
        "GITHUB_ACTION_REPOSITORY": "org/backstop",
        "GITHUB_ACTOR": "octocat",
        "GITHUB_API_URL": step.api_url,
        "GITHUB_EVENT_NAME": step.event_name,
        "GITHUB_GRAPHQL_URL": step.graphql_url or f"{step.api_url}/graphql",
        "GITHUB_JOB": "gate",
        "GITHUB_REF": step.ref,
        "GITHUB_REF_NAME": step.ref.removeprefix("refs/heads/").removeprefix("refs/pull/"),
        "GITHUB_REPOSITORY": REPOSITORY,
        "GITHUB_REPOSITORY_ID": "2",
        "GITHUB_REPOSITORY_OWNER": REPOSITORY.partition("/")[0],
        "GITHUB_RUN_ATTEMPT": str(step.run_attempt),
        "GITHUB_RUN_ID": str(step.run_id),
        "GITHUB_RUN_NUMBER": str(step.run_number),
        "GITHUB_SERVER_URL": "https://github.com",
        "GITHUB_SHA": step.sha,
        "GITHUB_WORKFLOW": "Backstop",
        "RUNNER_ARCH": "X64",
        "RUNNER_ENVIRONMENT": "github-hosted",
        "RUNNER_NAME": "GitHub Actions 1",
        "RUNNER_OS": "Linux",
    }
