"""What decides what a layer with packages holds, and what the container that makes it is given."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest

from backstop.adapters.docker.building import inside
from backstop.adapters.docker.building.daemon import said_of, shown
from backstop.adapters.docker.building.recipe import Recipe
from backstop.adapters.docker.building.requirements import Packages
from backstop.adapters.docker.building.template import Template, template

ROOT = Path(__file__).parents[5]


def made(
    recipe: Recipe | None = None, *, base: str = "sha256:1", wanted: str = "a==1", **said: object
) -> Template:
    packages = Packages(file="x", wanted=[wanted], **said)  # type: ignore[arg-type]  # handed on
    return template(packages, recipe or Recipe(), base=base)


@pytest.mark.parametrize(
    "other",
    [
        made(base="sha256:2"),
        made(wanted="a==2"),
        made(bounds=["b<2"]),
        made(preview=True),
        made(Recipe(wheels_only=False)),
        made(Recipe(compiled=False)),
        made(Recipe(index="https://index.example/simple")),
        template(None, Recipe(), base="sha256:1"),
    ],
)
def test_whatever_decides_what_is_installed_names_another_layer(other: Template) -> None:
    assert other.digest != made().digest


@pytest.mark.parametrize(
    "same",
    [
        made(Recipe(memory=1, wall_s=1, disk=1, python="3.13", proxy="http://me:pw@p.example")),
        template(Packages(file="elsewhere", wanted=["a==1"]), Recipe(), base="sha256:1"),
    ],
)
def test_bounds_and_places_do_not(same: Template) -> None:
    assert same.digest == made().digest


def test_a_password_of_an_index_names_no_layer_and_is_not_shown() -> None:
    one = made(Recipe(index="https://me:one@index.example/simple"))
    other = made(Recipe(index="https://me:two@index.example/simple"))
    assert one.digest == other.digest
    assert one.files["index"] == b"https://me:one@index.example/simple"
    assert "me:one" not in repr(one)
    assert "index" not in made().files


def test_the_workplace_belongs_to_the_one_who_installs() -> None:
    with tarfile.open(fileobj=io.BytesIO(made().archive())) as tar:
        assert {(member.uid, member.gid, member.mtime) for member in tar} == {(65532, 65532, 0)}
        names = set(tar.getnames())
    assert {"opt/backstop/build/install.py", "opt/backstop/build/requirements.txt"} <= names


def test_our_clock_is_the_one_of_our_lock_by_its_hashes() -> None:
    text = (Path(inside.__file__).parent / "clock.txt").read_text(encoding="utf-8")
    version, *hashes = text.replace("\\", "").split()
    lock = (ROOT / "uv.lock").read_text(encoding="utf-8")
    assert version.startswith("time-machine==")
    assert f'name = "time-machine"\nversion = "{version.partition("==")[2]}"' in lock
    assert hashes
    for one in hashes:
        assert f'hash = "{one.removeprefix("--hash=")}"' in lock


@pytest.mark.parametrize("example", ["vendor_onboarding", "airline"])
def test_the_examples_run_on_what_our_lock_has(example: str) -> None:
    lock = (ROOT / "uv.lock").read_text(encoding="utf-8")
    lines = (ROOT / "examples" / example / "requirements.txt").read_text().splitlines()[1:]
    assert any(line.startswith("google-adk==") for line in lines)
    for line in lines:
        name, _, version = line.partition(" ")[0].partition("==")
        assert f'name = "{name}"\nversion = "{version}"' in lock, line


def test_what_a_build_said_is_shown_in_one_harmless_line() -> None:
    assert shown("a\n::error::b\x1b[31m\u202e") == "a ::error::b\\x1b[31m\\u202e"
    assert shown("x" * 5000 + "end").endswith("end")
    assert len(shown("x" * 5000)) < 500


@pytest.mark.parametrize(
    "data", [None, b"", b"{", b"[]", b"1", b"\xff", b"[" * 100_000, b'{"python": 1}']
)
def test_what_the_container_leaves_is_not_believed(data: bytes | None) -> None:
    assert said_of(data) == {}


def test_what_the_container_leaves_is_read() -> None:
    assert said_of(b'{"python": "/x", "adk": 2}') == {"python": "/x"}
