"""Installs a candidate's packages, and our clock, in a container of their own.

Runs on the image's own Python, whichever that is, with the standard library alone. It is given
one folder that holds what to install, never the candidate's source. What it says at the end, in
a file, is small; nobody outside believes more of it than they have to.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from importlib import metadata
from pathlib import Path
from urllib.parse import urlsplit

OLDEST = (3, 11)
TAIL = 16_384
NOT_AT_WORK = r"lib/python[0-9.]+/(test|idlelib|lib2to3|tkinter|turtledemo|ensurepip)/"
"""Large parts of the standard library that no agent imports."""


class Failure(Exception):
    """A step that did not work out: what is said of it, in one word, and its last output."""

    def __init__(self, slug: str, detail: str) -> None:
        super().__init__(detail)
        self.slug = slug
        self.detail = detail


def main(folder: Path) -> int:
    """Do what `folder`/plan.json says; what became of it is in `folder`/said.json."""
    plan = json.loads((folder / "plan.json").read_text(encoding="utf-8"))
    try:
        said = install(plan, folder)
    except Failure as failure:
        said = {"slug": failure.slug, "detail": failure.detail}
    except OSError as error:
        full = "disk" if error.errno in {28, 122} else "build-failed"
        said = {"slug": full, "detail": str(error)}
    except Exception as error:  # noqa: BLE001 - there is nobody else to tell
        said = {"slug": "base-unusable", "detail": f"{type(error).__name__}: {error}"}
    clear(folder)
    (folder / "said.json").write_text(json.dumps(said), encoding="utf-8")
    return 1 if "slug" in said else 0


def install(plan: dict[str, object], folder: Path) -> dict[str, str]:
    """The interpreter that has the packages, their folder, and the version of google-adk."""
    if sys.version_info < OLDEST:
        found = ".".join(map(str, sys.version_info[:2]))
        raise Failure("python-too-old", found)
    python, packages, places = sys.executable, "", list(sys.path)
    if plan["env"] is not None:
        env = Path(str(plan["env"]))
        python, packages = environment(env)
        places = [packages, *places]
        files = ["-r", str(folder / "requirements.txt"), "-c", str(folder / "bounds.txt")]
        pip(python, [*pip_install(plan), *files], folder)
    place = ["--target", str(plan["clock"]), "-r", str(folder / "clock.txt")]
    exactly = ["--no-deps", "--require-hashes", "--only-binary", ":all:"]
    pip(sys.executable, [*pip_install(plan, wheels=True), *exactly, *place], folder)
    if packages and plan["compiled"]:
        library = sysconfig.get_path("stdlib")
        compiled([library, packages, str(plan["clock"])], into=str(plan["compiled"]))
    version = adk(places)
    if version is None:
        raise Failure("no-adk", "")
    return {"python": python, "packages": packages, "adk": version}


def environment(env: Path) -> tuple[str, str]:
    """Make a virtual environment: its interpreter, and the folder of its packages."""
    try:
        import venv
    except ImportError as error:
        raise Failure("base-unusable", f"its Python has no venv: {error}") from None
    venv.create(env, system_site_packages=True, symlinks=True, with_pip=False)
    version = ".".join(map(str, sys.version_info[:2]))
    return str(env / "bin" / "python"), str(env / "lib" / f"python{version}" / "site-packages")


def pip_install(plan: dict[str, object], *, wheels: bool = False) -> list[str]:
    """The beginning of a call of pip that asks nobody, keeps nothing and builds nothing."""
    call = ["install", "--no-input", "--no-cache-dir", "--no-compile", "--progress-bar", "off"]
    call += ["--disable-pip-version-check", "--no-warn-script-location"]
    if plan["wheels_only"] and not wheels:
        call += ["--only-binary", ":all:"]
    if plan["preview"] and not wheels:
        call += ["--pre"]
    if plan["proxy"]:
        call += ["--proxy", str(plan["proxy"])]
    return call


def pip(python: str, arguments: list[str], folder: Path) -> None:
    """Run the image's pip for an interpreter, and keep only the end of what it says."""
    # It cannot be compiled where it lies, and takes seconds to be compiled at each start.
    head = [python, "-I", "-X", f"pycache_prefix={folder / 'pip'}", "-m", "pip"]
    environ = {**os.environ, "TMPDIR": str(folder / "tmp"), "HOME": str(folder / "tmp")}
    if (folder / "index").exists():
        # Not among the arguments: it may hold a password, and pip repeats those in errors.
        environ["PIP_INDEX_URL"] = (folder / "index").read_text(encoding="utf-8")
        # The configuration says where packages come from, and may say that it is plain http.
        place = urlsplit(environ["PIP_INDEX_URL"])
        if place.scheme == "http":
            environ["PIP_TRUSTED_HOST"] = place.netloc.rpartition("@")[2]
    (folder / "tmp").mkdir(exist_ok=True)
    kept = b""
    with subprocess.Popen(  # noqa: S603 - pip, with arguments of ours
        [*head, *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=environ,
    ) as running:
        while running.stdout and (chunk := os.read(running.stdout.fileno(), 65_536)):
            kept = (kept + chunk)[-TAIL:]
            tell(kept, folder)
    text = kept.decode("utf-8", "replace")
    if running.returncode:
        if "No module named pip" in text:
            raise Failure("base-unusable", "it has no pip")
        if "No space left on device" in text or "Disk quota exceeded" in text:
            raise Failure("disk", text)
        raise Failure("build-failed", text)


def tell(said: bytes, folder: Path) -> None:
    """Leave the last line where whoever waits outside can look."""
    lines = said.rstrip().rsplit(b"\n", 1)
    (folder / "now").write_bytes(lines[-1][:200])


def compiled(folders: list[str], *, into: str) -> None:
    """Compile once what every start would compile again: nothing can be written there later.

    The standard library too, which images leave as it is. It cannot be compiled where it lies,
    and Python looks for all that is compiled in one place.
    """
    call = [sys.executable, "-P", "-s", "-m", "compileall", "-q"]
    call += ["-j", str(os.cpu_count() or 1), "-x", NOT_AT_WORK, *folders]
    # Some packages carry templates that are no Python; that they do not compile is no fault.
    subprocess.run(  # noqa: S603 - the standard library's own
        call,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        # Its workers hear of no option.
        env={**os.environ, "PYTHONPYCACHEPREFIX": into},
    )


def adk(places: list[str]) -> str | None:
    """The version of google-adk that these folders have; none of their code is run."""
    for found in metadata.distributions(path=places):
        if re.sub(r"[-_.]+", "-", found.metadata["Name"] or "").lower() == "google-adk":
            return found.version
    return None


def clear(folder: Path) -> None:
    """Leave nothing of what was needed: an index may have been named with a password."""
    for entry in folder.iterdir():
        if entry.is_dir():
            shutil.rmtree(entry, ignore_errors=True)
        elif entry.name != "install.py":
            entry.unlink()


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
