"""A stand-in for ``python:X.Y-slim`` that needs no registry: a CPython of this machine, packed.

The image holds the interpreter below /usr/local, pip, a shell with the usual small programs,
every library that these load, and the certificates of this machine. All libraries lie in the
one folder where the loader looks by itself, so no cache of it is needed. The layer is the same
from run to run.

    python -m tests.docker.base_image [PYTHON]    makes it in the daemon of DOCKER_HOST
"""

from __future__ import annotations

import io
import json
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Final

import docker

_PREFERRED: Final = "3.12"
_PROGRAMS: Final = (
    "[ basename bash cat chgrp chmod chown cmp comm cp cut date dd df diff dirname du echo env "
    "expr false find getent grep gzip head id install kill ln ls mkdir mktemp mv nproc od ps "
    "pwd readlink realpath rm rmdir sed seq sh sha256sum sleep sort stat sync tail tar tee test "
    "timeout touch tr true uname uniq wc whoami xargs"
)
_FOLDERS: Final = "dev etc home opt proc run srv sys usr/local/bin var/cache var/lib"
_RUNTIMES: Final = (
    "libc.so.6 libdl.so.2 libgcc_s.so.1 libm.so.6 libnss_dns.so.2 libnss_files.so.2 "
    "libpthread.so.0 libresolv.so.2 librt.so.1 libstdc++.so.6 libutil.so.1"
)
"""What wheels load that nothing in the image itself does; older C libraries have more of them."""

_LEFT_OUT: Final = {
    "__pycache__",
    "dist-packages",
    "idlelib",
    "lib2to3",
    "site-packages",
    "test",
    "tests",
    "tkinter",
    "turtledemo",
}
_CERTIFICATES: Final = Path("/etc/ssl/certs/ca-certificates.crt")
_USERS: Final = "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n"
_GROUPS: Final = "root:x:0:\nnogroup:x:65534:\n"
_ASK: Final = """
import json, os, sys, sysconfig
try:
    import pip
except ImportError:
    pip = None
print(json.dumps({
    "program": os.path.realpath(sys.executable),
    "version": sys.version.split()[0],
    "library": sysconfig.get_path("stdlib"),
    "pip": pip and os.path.dirname(pip.__file__),
}))
"""


class NoInterpreter(Exception):
    """No CPython of this machine can be packed: why, in one line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Interpreter:
    """A CPython of this machine: its program, whole version, standard library and pip."""

    program: Path
    version: str
    library: Path
    pip: Path

    @property
    def short(self) -> str:
        """The version without its patch level."""
        return ".".join(self.version.split(".")[:2])

    @property
    def tag(self) -> str:
        """The image that the stand-in stands for."""
        return f"python:{self.short}-slim"


def interpreter(program: str | None = None) -> Interpreter:
    """The interpreter to pack: `program`, else a 3.12 of pyenv or the path, else this one.

    An environment of its own may have no pip; then it is the one that this was made of.
    """
    said = ""
    for choice in [program] if program else _choices():
        done = subprocess.run(
            [choice, "-I", "-c", _ASK], capture_output=True, check=False, text=True
        )
        said = done.stderr.strip()[-200:]
        if done.returncode == 0 and (found := json.loads(done.stdout))["pip"]:
            return Interpreter(
                program=Path(found["program"]),
                version=found["version"],
                library=Path(found["library"]),
                pip=Path(found["pip"]),
            )
    raise NoInterpreter(f"no Python with pip to make a base image of: {said}")


def _choices() -> list[str]:
    of_pyenv = sorted(Path.home().glob(f".pyenv/versions/{_PREFERRED}.*/bin/python{_PREFERRED}"))
    named = shutil.which(f"python{_PREFERRED}")
    below = Path(sys.base_prefix) / "bin" / f"python{sys.version_info[0]}.{sys.version_info[1]}"
    here = [sys.executable, *([str(below)] if below.exists() else [])]
    return [*map(str, reversed(of_pyenv)), *([named] if named else []), *here]


def make(client: docker.DockerClient, source: Interpreter) -> str:
    """Make the image in the daemon, if it has none of that name; its tag."""
    if not client.images.list(name=source.tag):
        with tempfile.TemporaryFile() as layer:
            with tarfile.open(fileobj=layer, mode="w") as tar:
                _write(Layer(tar=tar), source)
            layer.seek(0)
            client.api.import_image_from_data(
                layer.read(), repository=source.tag, changes=_configuration(source)
            )
    return source.tag


def _configuration(source: Interpreter) -> list[str]:
    # What slim images say, and where pip finds the certificates of this machine.
    return [
        "ENV PATH=/usr/local/bin:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin",
        "ENV LANG=C.UTF-8",
        f"ENV PYTHON_VERSION={source.version}",
        f"ENV PIP_CERT={_CERTIFICATES}",  # a line each: podman takes two in one for one
        f"ENV SSL_CERT_FILE={_CERTIFICATES}",
        'CMD ["python3"]',
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """A layer that is being written: nothing in it tells when, or by whom."""

    tar: tarfile.TarFile
    written: set[str] = field(default_factory=set)

    def folder(self, name: str, mode: int = 0o755) -> None:
        """An empty folder, with those that it lies in."""
        parents = [str(place) for place in reversed(PurePosixPath(name).parents)][1:]
        for place in [*parents, name]:
            if place not in self.written:
                entry = tarfile.TarInfo(place)
                entry.type, entry.mode = tarfile.DIRTYPE, mode if place == name else 0o755
                self._add(entry)

    def link(self, name: str, to: str) -> None:
        """A symbolic link."""
        entry = tarfile.TarInfo(name)
        entry.type, entry.linkname = tarfile.SYMTYPE, to
        self._add(entry)

    def file(self, name: str, content: bytes, mode: int = 0o644) -> None:
        """A file, and the folders that it lies in; the first of a name counts."""
        if name in self.written:
            return
        self.folder(str(PurePosixPath(name).parent))
        entry = tarfile.TarInfo(name)
        entry.size, entry.mode = len(content), mode
        self._add(entry, content)

    def _add(self, entry: tarfile.TarInfo, content: bytes = b"") -> None:
        self.written.add(entry.name)
        self.tar.addfile(entry, io.BytesIO(content))


def _write(layer: Layer, source: Interpreter) -> None:
    for place in ("bin", "sbin", "lib", "lib64"):
        layer.folder(f"usr/{place}")
        layer.link(place, f"usr/{place}")
    for place in _FOLDERS.split():
        layer.folder(place)
    layer.folder("root", 0o700)
    layer.folder("tmp", 0o1777)
    layer.folder("var/tmp", 0o1777)
    layer.file("etc/passwd", _USERS.encode())
    layer.file("etc/group", _GROUPS.encode())
    for path in (Path("/etc/nsswitch.conf"), Path("/etc/os-release"), _CERTIFICATES):
        if path.exists():
            layer.file(str(path).lstrip("/"), path.read_bytes())
    binaries = [*_write_python(layer, source), *_write_programs(layer)]
    _write_libraries(layer, binaries)


def _write_programs(layer: Layer) -> Iterator[Path]:
    for name in _PROGRAMS.split():
        found = shutil.which(name, path="/usr/bin:/bin")
        if found:
            layer.file(f"usr/bin/{name}", Path(found).read_bytes(), 0o755)
            yield Path(found)


def _write_python(layer: Layer, source: Interpreter) -> Iterator[Path]:
    """Write the interpreter; what of it loads libraries."""
    name = f"python{source.short}"
    layer.file(f"usr/local/bin/{name}", _stripped(source.program), 0o755)
    for alias in ("python3", "python"):
        layer.link(f"usr/local/bin/{alias}", name)
    start = f"#!/usr/local/bin/{name}\nimport sys\nfrom pip._internal.cli.main import main\n"
    for alias in (f"pip{source.short}", "pip3", "pip"):
        layer.file(f"usr/local/bin/{alias}", f"{start}sys.exit(main())\n".encode(), 0o755)
    home = f"usr/local/lib/{name}"
    layer.folder(f"{home}/site-packages")
    layer.link(f"{home}/dist-packages", "site-packages")  # where Debian's own looks
    yield source.program
    for path in _files(source.library):
        inside = path.relative_to(source.library).as_posix()
        layer.file(f"{home}/{inside}", _relocated(path, source), 0o644)
        if path.suffix == ".so":
            yield path
    site = source.pip.parent
    for folder in [source.pip, *sorted(site.glob("pip-*.dist-info"))]:
        for path in sorted(folder.rglob("*")):
            if path.is_file() and path.suffix != ".pyc":
                inside = path.relative_to(site).as_posix()
                layer.file(f"{home}/site-packages/{inside}", path.read_bytes())


def _files(library: Path) -> Iterator[Path]:
    for path in sorted(library.rglob("*")):
        parts = path.relative_to(library).parts
        for_builds = parts[0].startswith("config-") or re.match(
            r"_(test|tkinter|xxtest)", path.name
        )
        if not for_builds and not _LEFT_OUT.intersection(parts) and path.is_file():
            yield path


def _relocated(path: Path, source: Interpreter) -> bytes:
    if path.suffix == ".so":
        return _stripped(path)
    content = path.read_bytes()
    if path.name.startswith("_sysconfigdata"):
        # Paths of this machine, in what tells builds where things are.
        return content.replace(str(source.library.parents[1]).encode(), b"/usr/local")
    return content


def _stripped(binary: Path) -> bytes:
    """A program or library without what only a debugger reads, where it can be taken off."""
    if shutil.which("strip"):
        with tempfile.NamedTemporaryFile() as slim:
            command = ["strip", "--strip-unneeded", "-o", slim.name, str(binary)]
            if subprocess.run(command, capture_output=True, check=False).returncode == 0:
                return Path(slim.name).read_bytes()
    return binary.read_bytes()


def _write_libraries(layer: Layer, binaries: list[Path]) -> None:
    # Where the loader looks without being told: no cache has to be written into the image.
    place = f"usr/lib/{sysconfig.get_config_var('MULTIARCH')}"
    done = subprocess.run(["ldd", *map(str, binaries)], capture_output=True, check=False, text=True)
    loader = set(re.findall(r"^\s+(/\S*/ld-linux\S+) \(", done.stdout, re.MULTILINE))
    found = dict(re.findall(r"^\s+(\S+) => (/\S+) \(", done.stdout, re.MULTILINE))
    home = Path(found["libc.so.6"]).parent
    for name in _RUNTIMES.split():
        if (home / name).exists():
            found.setdefault(name, str(home / name))
    for name, path in sorted(found.items()):
        layer.file(f"{place}/{name}", _stripped(Path(path)), 0o755)
    for path in sorted(loader):
        folder = PurePosixPath(path).parts[1]
        layer.file(f"usr/{folder}/{Path(path).name}", Path(path).read_bytes(), 0o755)


def main() -> None:
    """Make the image in the daemon of DOCKER_HOST and print its tag."""
    client = docker.from_env()
    try:
        print(make(client, interpreter(*sys.argv[1:2])))  # noqa: T201
    except NoInterpreter as why:
        sys.exit(f"base-image: {why}")
    finally:
        client.close()


if __name__ == "__main__":
    main()
