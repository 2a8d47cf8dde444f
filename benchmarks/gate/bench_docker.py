"""The gate in containers beside the gate in processes, and beside one whose replays were kept.

    python -m benchmarks.gate.bench_docker [ROUNDS]

Needs a daemon (DOCKER_HOST) with the base image of the candidate. The pull request puts v3 of
the specimen in the place of v1; base and candidate are replayed. The images are made before
anything is measured. All contenders take turns; each gate is a process of its own, from its
start to its end.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter
from typing import Any, Final

import yaml

ROOT: Final = Path(__file__).parents[2]
SPECIMEN: Final = ROOT / "examples/vendor_onboarding"
AGENT: Final = "vendor-onboarding"
ROUNDS: Final = 7
FACTOR, EXTRA_S = 1.3, 1.0
"""The goal: at most so many times the gate in processes, and so much more."""


def checkout(folder: Path, version: str) -> Path:
    """A repository of one agent, as it is with a version of the specimen."""
    stated = yaml.safe_load((ROOT / "backstop.yaml").read_text(encoding="utf-8"))
    agent = {**stated["agents"][AGENT], "path": "agent", "ledger": "ledger.jsonl"}
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(SPECIMEN / version, folder / "agent", ignore=ignored)
    shutil.copyfile(SPECIMEN / "requirements.txt", folder / "requirements.txt")
    shutil.copyfile(ROOT / f"ledgers/{AGENT}.jsonl", folder / "ledger.jsonl")
    config = {"version": 1, "agents": {AGENT: agent}, "sandbox": {"kind": "process"}}
    (folder / "backstop.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
    return folder


def gated(work: Path, *options: str) -> tuple[float, dict[str, Any]]:
    """Seconds of one gate, and its verdict."""
    command = [sys.executable, "-m", "backstop", "gate", "--format", "json"]
    command += ["--config", str(work / "head/backstop.yaml"), "--base", str(work / "base")]
    environment = {**os.environ, "BACKSTOP_CACHE_KEY": "0" * 32}
    since = perf_counter()
    ran = subprocess.run(
        [*command, *options], capture_output=True, check=False, cwd=ROOT, env=environment
    )
    spent = perf_counter() - since
    if ran.returncode != 1:
        raise SystemExit(f"{' '.join(options)}: exit {ran.returncode}\n{ran.stderr.decode()}")
    return spent, json.loads(ran.stdout)


def main() -> int:
    """Measure, print, and say whether the goal is met."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        work = Path(folder)
        checkout(work / "base", "v1")
        checkout(work / "head", "v3")
        contenders = {
            "process": ("--sandbox", "process"),
            "docker": ("--sandbox", "docker"),
            "docker, kept": ("--sandbox", "docker", "--cache-dir", str(work / "cache")),
        }
        first, _ = gated(work, *contenders["docker"])
        gated(work, *contenders["docker, kept"])
        times: dict[str, list[float]] = {name: [] for name in contenders}
        digests: set[str] = set()
        for _ in range(rounds):
            for name, options in contenders.items():
                spent, verdict = gated(work, *options)
                times[name].append(spent)
                digests.add(verdict["digest"])
    print(f"first gate in containers, images made or found: {first:.2f} s")
    for name, spent in times.items():
        low, high = min(spent), max(spent)
        print(f"{name:13} median {statistics.median(spent):6.2f} s   {low:.2f} to {high:.2f}")
    goal = FACTOR * statistics.median(times["process"]) + EXTRA_S
    met = statistics.median(times["docker"]) <= goal
    told = "met" if met else "missed"
    print(f"goal for docker: {FACTOR} x process + {EXTRA_S} s = {goal:.2f} s: {told}")
    print(f"verdicts: {rounds * len(contenders)} gates, {len(digests)} digest(s)")
    return 0 if met and len(digests) == 1 else 1


if __name__ == "__main__":
    raise SystemExit(main())
