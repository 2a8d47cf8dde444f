"""A checkout's own Dockerfile: nothing happens with it unless the configuration asks for it."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from backstop.adapters.docker.building.built import CLOCK
from tests.e2e.building import Building, checkout, contents, watched

OWN = """FROM {base}
RUN python3 -c "open('/pwned', 'w')"
"""


def test_a_checkouts_own_dockerfile_is_not_looked_at_unless_asked_for(
    building: Building, tmp_path: Path
) -> None:
    root = checkout(tmp_path, Dockerfile=OWN.format(base=building.base))
    names, _ = contents(building.client, building(root).image)
    assert "pwned" not in names
    assert "candidate/Dockerfile" in names


def test_a_checkouts_own_dockerfile_is_built_where_asked_for(
    building: Building, tmp_path: Path
) -> None:
    file = OWN.format(base=building.base) + (
        "COPY requirements.txt /\nENV PIP_INDEX_URL={i}\n"
        "RUN python3 -m pip install --trusted-host {h} -r /requirements.txt\n"
    ).format(i=building.index.address, h=building.index.address.split("/")[2])
    root = checkout(
        tmp_path,
        **{
            "deploy/Dockerfile": file,
            "requirements.txt": "google-adk\n",
            ".dockerignore": "*\n!requirements.txt\n",
            ".env": "s3cret",
        },
    )
    root.joinpath(".dockerignore").write_text("*\n!requirements.txt\n!deploy\n")
    built = building(root, dockerfile="deploy/Dockerfile")
    names, data = contents(building.client, built.image)
    assert {"pwned", "candidate/agents/vendor/agent.py"} <= names
    assert b"s3cret" not in data
    code = (
        f"import sys; sys.path.insert(0, {str(CLOCK)!r}); import time_machine, google.adk.version"
    )
    assert building.run(built, code) == ""
    with watched(building.client) as seen:
        assert building(root, dockerfile="deploy/Dockerfile") == built
    assert seen == []


@pytest.mark.parametrize(
    ("step", "slug", "words"),
    [
        ("RUN echo of its own words && false", "build-failed", "of its own words"),
        ("RUN sleep 611", "build-hangs", "not built after 4 s"),
        ("RUN exec true", "no-adk", "google-adk"),
    ],
)
def test_a_dockerfile_that_does_not_build_leaves_nothing(
    building: Building, tmp_path: Path, step: str, slug: str, words: str
) -> None:
    root = checkout(tmp_path, Dockerfile=f"FROM {building.base}\n{step}\n")
    wall = 4.0 if slug == "build-hangs" else 240.0
    found, message = building.refused(root, dockerfile="Dockerfile", wall_s=wall)
    assert (found, words in message) == (slug, True), message
    # The daemon ends what nobody waits for any more, and takes its time.
    for _ in range(200):
        if not [held for held in building.client.api.containers(all=True) if is_of(step, held)]:
            return
        threading.Event().wait(0.2)
    pytest.fail("what the step started still runs")


def is_of(step: str, container: dict[str, Any]) -> bool:
    return step.removeprefix("RUN ") in container["Command"]


def test_a_dockerfile_that_is_not_there_is_told_so(building: Building, tmp_path: Path) -> None:
    assert building.refused(checkout(tmp_path), dockerfile="none")[0] == "requirements-missing"
