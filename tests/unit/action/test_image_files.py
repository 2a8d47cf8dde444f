"""The files that the action's image is made of."""

from __future__ import annotations

import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[3]


def test_the_images_packages_are_those_of_the_lock_file(tmp_path: Path) -> None:
    """`.github/requirements-action.sh` would write what is there, hashes included."""
    written = tmp_path / "requirements.txt"
    subprocess.run((ROOT / ".github" / "requirements-action.sh", written), check=True)
    assert written.read_text() == (ROOT / "requirements-action.txt").read_text()


def test_every_package_of_the_image_has_a_hash() -> None:
    lines = (ROOT / "requirements-action.txt").read_text().replace("\\\n", " ").splitlines()
    packages = [line for line in lines if line and not line.startswith("#")]
    assert len(packages) > 20
    assert all("==" in line and "--hash=sha256:" in line for line in packages)


def test_the_dockerfile_asks_for_no_newer_builder() -> None:
    """The runner may build with the old one."""
    text = (ROOT / "Dockerfile").read_text()
    assert not any(word in text for word in ("# syntax", "--mount", "--chmod", "<<"))


def test_the_entrypoint_is_three_lines() -> None:
    lines = (ROOT / "entrypoint.py").read_text().splitlines()
    assert len([line for line in lines if line]) == 3


def test_the_workflow_to_copy_has_twelve_lines_and_spells_its_permissions_out() -> None:
    lines = (ROOT / "examples" / "workflow.yml").read_text().splitlines()
    assert len(lines) == 12
    assert "permissions: {}" in lines
    assert any("contents: read, pull-requests: write" in line for line in lines)


def test_the_readme_shows_the_workflow_to_copy() -> None:
    assert (ROOT / "examples" / "workflow.yml").read_text() in (ROOT / "README.md").read_text()
