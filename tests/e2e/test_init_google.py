"""Agents made for Google's cloud, as its templates make them: loaded, or told what is missing."""

from __future__ import annotations

import os
from pathlib import Path

from backstop.replay.harness.credentials import VARIABLE, lend
from tests.e2e.adopted import desk, lay
from tests.e2e.command import backstop

TEMPLATE = """\
import os
import google.auth
_, project_id = google.auth.default()
{sets}
"""
SETS = 'os.environ.setdefault("GOOGLE_CLOUD_PROJECT", project_id)'
REMOTE = "from google.adk.agents.remote_a2a_agent import RemoteA2aAgent\n"


def said(root: Path, *options: str) -> str:
    ran = backstop("init", "--diff", "--root", root, *options)
    assert (ran.code, ran.err) == (0, "")
    return " ".join(ran.out.replace("#", " ").split())


def test_an_agent_that_looks_up_googles_credentials_is_loaded(tmp_path: Path) -> None:
    lay(tmp_path, desk("desk", before=TEMPLATE.format(sets="")))
    assert "Not loaded" not in said(tmp_path)
    ran = backstop("doctor", tmp_path / "desk")
    assert (ran.code, "169.254" in ran.out) == (0, False), ran.out


def test_the_project_that_credentials_would_know_is_asked_for_by_its_variable(
    tmp_path: Path,
) -> None:
    lay(tmp_path, desk("desk", before=TEMPLATE.format(sets=SETS)))
    assert "Not loaded: the environment variable GOOGLE_CLOUD_PROJECT is not set" in said(tmp_path)
    assert "Not loaded" not in said(tmp_path, "--env", "GOOGLE_CLOUD_PROJECT=none")


def test_credentials_that_a_configuration_names_are_the_ones_that_count(tmp_path: Path) -> None:
    lay(tmp_path, desk("desk", before=TEMPLATE.format(sets="")))
    told = said(tmp_path, "--env", f"{VARIABLE}=nowhere.json")
    assert "Not loaded: its import asks for credentials" in told


def test_a_part_of_the_framework_whose_package_is_missing_is_told_by_that(tmp_path: Path) -> None:
    lay(tmp_path, desk("desk", before=REMOTE))
    assert "Not loaded: the module a2a is not installed" in said(tmp_path)


def test_what_is_lent_is_taken_by_googles_library_and_is_nobodys(tmp_path: Path) -> None:
    import google.auth

    kept = os.environ.pop(VARIABLE, None)
    try:
        lend(tmp_path)
        place = Path(os.environ[VARIABLE])
        assert place.parent == tmp_path
        credentials, project = google.auth.default()
        assert (credentials.valid, project) == (False, None)
    finally:
        os.environ.pop(VARIABLE, None)
        if kept is not None:
            os.environ[VARIABLE] = kept
