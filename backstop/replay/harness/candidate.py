"""Loads the candidate as the framework's own tools do, and says exactly why it does not load."""

from __future__ import annotations

import contextlib
import importlib
import os
import re
import sys
from pathlib import Path
from typing import Any, Final

_IMPORTABLE: Final = re.compile(r"[A-Za-z0-9_]+")
_OLDEST_WITH_WORKFLOWS, _OLDEST_SUPPORTED = (2, 0), (2, 11)


class Unusable(Exception):
    """The candidate cannot be replayed; `slug` and `where` go into the fault."""

    def __init__(self, slug: str, detail: str, where: str = "") -> None:
        super().__init__(detail)
        self.slug = slug
        self.where = where


class Candidate:
    """A loaded agent: its root, its app if it has one, and the name it goes by."""

    def __init__(self, loaded: Any, *, folder: Path, adk: str) -> None:
        self.app = loaded if hasattr(loaded, "root_agent") and hasattr(loaded, "plugins") else None
        self.root = self.app.root_agent if self.app is not None else loaded
        self.name = self.app.name if self.app is not None else folder.name
        self.plugins = list(self.app.plugins) if self.app is not None else []
        self.folder = folder
        self.adk = adk


def framework_version() -> str:
    """The version of the candidate's ADK. Raises `Unusable` for none, or one that is too old."""
    try:
        from google.adk.version import __version__
    except ImportError as error:
        raise Unusable(
            "adk-missing",
            f"google-adk cannot be imported in {sys.prefix}: {error}; install it there",
        ) from None
    version = str(__version__)
    if _release(version) < _OLDEST_WITH_WORKFLOWS:
        raise Unusable(
            "agent-adk-too-old",
            f"google-adk {version} in {sys.prefix} is too old: 2.11 and later are replayed; raise "
            "it there",
        )
    return version


def clock() -> None:
    """Import what freezes the clock. Raises `Unusable` where it is not for this interpreter."""
    # Its plugin for pytest would import that, which takes as long as half an agent.
    absent = "pytest" not in sys.modules
    if absent:
        sys.modules["pytest"] = None  # type: ignore[assignment]
    try:
        importlib.import_module("time_machine")
    except ImportError as error:
        version = ".".join(map(str, sys.version_info[:2]))
        raise Unusable(
            "clock-missing",
            f"time-machine cannot be imported by Python {version} in {sys.prefix}: {error}; "
            "install it there, or run Backstop on the same Python",
        ) from None
    finally:
        if absent:
            del sys.modules["pytest"]


def warm() -> None:
    """Import what loading and running agents imports of the framework and its libraries.

    Much of it loads when an agent first runs, so one of ours does. A version too old for
    that one is told of later, if the candidate needs what it lacks.
    """
    with contextlib.suppress(ImportError, AttributeError, TypeError, ValueError):
        from .rehearsal import rehearse

        rehearse()


def load(folder: Path, *, start: Path, links: Path, adk: str) -> Candidate:
    """Import the agent in `folder`. Raises `Unusable`, naming the place in the candidate.

    From now on this process is in the folder `start`. A folder whose name is no Python name, or
    that of a module which is loaded already (an agent called ``email``), is imported through a
    link below `links`; `adk` is the framework's version.
    """
    if not folder.is_dir():
        raise Unusable("agent-missing", f"there is no agent folder {folder.name}", str(folder))
    # Only now: whatever of ours is imported by a relative path would be the candidate's.
    os.chdir(start)
    loaded = _import(_importable(folder, links), folder, start)
    candidate = Candidate(loaded, folder=folder.resolve(), adk=adk)
    if type(candidate.root).__name__ == "Workflow" and _too_old(adk):
        raise Unusable(
            "agent-adk-too-old",
            f"a Workflow app needs google-adk 2.11 or later, this candidate has {adk}",
            str(folder),
        )
    return candidate


def _importable(folder: Path, links: Path) -> Path:
    if _IMPORTABLE.fullmatch(folder.name) and folder.name not in sys.modules:
        return folder
    links.mkdir(exist_ok=True)
    link = links / ("agent_" + re.sub(r"[^A-Za-z0-9_]", "_", folder.name))
    if not link.exists():
        link.symlink_to(folder.resolve(), target_is_directory=True)
    return link


def _import(folder: Path, shown: Path, start: Path) -> Any:
    try:
        return _loaded(folder, start)
    except ValueError as error:
        if str(error).startswith(("No root_agent found", "A 'root_agent' was found")):
            first = str(error).split("\n", 1)[0]
            raise Unusable("agent-no-root", first, str(shown)) from None
        raise Unusable("agent-import", said(error), place(error, shown)) from None
    except SystemExit as error:
        raise Unusable(
            "agent-import", f"the agent left by sys.exit({error.code!r}) on import", str(shown)
        ) from None
    except BaseException as error:  # noqa: BLE001 - whatever a user's module raises
        raise Unusable("agent-import", said(error), place(error, shown)) from None


def _loaded(folder: Path, start: Path) -> Any:
    """The agent, as the framework's loader loads it.

    The folder that it starts in, or ``src`` in there, becomes an import path where an agent
    cannot do without: it is served by who makes it one. Coming last, it shadows nothing.
    """
    from google.adk.cli.utils.agent_loader import AgentLoader

    places = [start, start / "src"]
    while True:
        try:
            return AgentLoader(str(folder.parent)).load_agent(folder.name)
        except ModuleNotFoundError as error:
            found = next((one for one in places if _holds(one, error.name or "")), None)
            if found is None:
                raise
            places.remove(found)
            sys.path.append(str(found))
            importlib.invalidate_caches()


def _holds(place: Path, module: str) -> bool:
    """Is there code of this name in a folder?"""
    top = module.partition(".")[0]
    return bool(top) and ((place / f"{top}.py").is_file() or any((place / top).glob("*.py")))


def _too_old(version: str) -> bool:
    return _OLDEST_WITH_WORKFLOWS <= _release(version) < _OLDEST_SUPPORTED


def _release(version: str) -> tuple[int, ...]:
    return tuple(int(n) for n in re.findall(r"\d+", version)[:2])


def said(error: BaseException) -> str:
    """One line of an exception: its class and message."""
    try:
        text = str(error)
    except Exception:  # noqa: BLE001 - a user's exception may raise even here
        text = ""
    return " ".join(f"{type(error).__name__}: {text}".split())[:1000]


def place(error: BaseException, folder: Path) -> str:
    """`file:line` of the innermost frame of `error` in the candidate's folder, or the folder."""
    found = str(folder)
    resolved = folder.resolve()
    frame = error.__traceback__
    while frame is not None:
        file = Path(frame.tb_frame.f_code.co_filename)
        if file.is_relative_to(folder) or file.is_relative_to(resolved):
            base = folder if file.is_relative_to(folder) else resolved
            found = f"{file.relative_to(base)}:{frame.tb_lineno}"
        frame = frame.tb_next
    return found
