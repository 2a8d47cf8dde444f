"""The script that installs packages, run here with an index that is a folder."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import sysconfig
from importlib.metadata import version
from pathlib import Path

import pytest

from backstop.adapters.docker.building.inside import install
from tests.docker.package_index import wheel

CLOCK = wheel("clock", "1.0", {"clock.py": "TICKS = True\n"})


class Workplace:
    """A folder as the container has it, and what is said in it at the end."""

    def __init__(self, top: Path) -> None:
        self.top = top
        self.folder = top / "build"
        self.folder.mkdir()
        self.index = top / "simple"
        self.write("index", self.index.as_uri())
        self.write("bounds.txt", "")
        digest = hashlib.sha256(CLOCK).hexdigest()
        self.write("clock.txt", f"clock==1.0 --hash=sha256:{digest}\n")
        self.offer("clock", "clock-1.0-py3-none-any.whl", CLOCK)

    def write(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text, encoding="utf-8")

    def offer(self, name: str, file: str, data: bytes) -> None:
        place = self.index / name
        place.mkdir(parents=True, exist_ok=True)
        (place / file).write_bytes(data)
        (place / "index.html").write_text(f'<a href="{file}">{file}</a>')

    def install(self, wanted: str, **plan: object) -> dict[str, str]:
        self.write("requirements.txt", wanted)
        chosen = {"env": str(self.top / "env"), "clock": str(self.top / "clock"), "proxy": None}
        chosen["compiled"] = str(self.top / "compiled")
        asked = {"wheels_only": True, "preview": False, **chosen, **plan}
        self.write("plan.json", json.dumps(asked))
        code = install.main(self.folder)
        said: dict[str, str] = json.loads((self.folder / "said.json").read_text())
        assert code == ("slug" in said)
        assert [path.name for path in self.folder.iterdir()] == ["said.json"]
        return said


@pytest.fixture
def workplace(tmp_path: Path) -> Workplace:
    return Workplace(tmp_path)


def test_packages_and_clock_are_there_compiled_and_nothing_else_is_left(
    workplace: Workplace,
) -> None:
    code = "__version__ = '9.9'\n"
    adk = wheel("Google_ADK", "9.9", {"google/adk/version.py": code})
    workplace.offer("google-adk", "google_adk-9.9-py3-none-any.whl", adk)
    said = workplace.install("google-adk\n", preview=True, proxy="http://127.0.0.1:1")
    assert said["adk"] == "9.9"
    assert (workplace.top / "clock" / "clock.py").exists()
    packages = Path(said["packages"])
    inside = Path("compiled", *packages.parts[1:])
    assert list((workplace.top / inside).glob("google/adk/version.*.pyc"))
    library = Path("compiled", *Path(sysconfig.get_path("stdlib")).parts[1:])
    assert list((workplace.top / library).glob("asyncio/events.*.pyc"))
    assert not list((workplace.top / library).glob("test"))
    code = "from google.adk.version import __version__; print(__version__)"
    found = subprocess.run([said["python"], "-I", "-c", code], capture_output=True, check=True)
    assert found.stdout == b"9.9\n"


def test_an_image_that_has_everything_is_given_the_clock_alone(workplace: Workplace) -> None:
    said = workplace.install("nothing-like-it==1\n", env=None)
    # The interpreter of these tests has an ADK, as such an image has.
    assert said == {"python": sys.executable, "packages": "", "adk": version("google-adk")}
    assert (workplace.top / "clock" / "clock.py").exists()
    assert install.adk([str(workplace.top)]) is None


def test_what_pip_says_of_a_fault_is_kept(workplace: Workplace) -> None:
    said = workplace.install("nothing-like-it==1\n")
    assert said["slug"] == "build-failed"
    assert "nothing-like-it" in said["detail"]
    assert len(said["detail"]) <= install.TAIL


def test_a_fault_of_the_machine_has_a_name_too(workplace: Workplace) -> None:
    (workplace.top / "env").write_text("in the way")
    assert workplace.install("a\n")["slug"] in {"build-failed", "base-unusable"}
