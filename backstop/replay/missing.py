"""What an agent lacks that does not load: told in one line, with what to do about it.

A harness says which exception an import ended with, and where. Most of them come down to a
few kinds: a variable that is not set, a package that is not installed, credentials or a
network that no replay has. What cannot be told apart is passed on as it was said.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final


class Kind(StrEnum):
    """What is missing."""

    VARIABLE = "variable"
    PACKAGE = "package"
    CREDENTIALS = "credentials"
    NETWORK = "network"
    FILE = "file"
    FRAMEWORK = "framework"
    TIME = "time"
    CODE = "code"


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """How a load ended: the fault's slug, words and place, as the harness told them.

    `line` is the text of the candidate's source at that place, empty where it has none; `attempts`
    are what the import tried and was barred from. `python` is what the agent's project says of
    the Python that it needs, empty where it says nothing.
    """

    slug: str
    detail: str
    where: str = ""
    line: str = ""
    attempts: tuple[str, ...] = ()
    python: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """What an agent lacks: its kind, its name (of a variable, a package), and two half sentences.

    `name` is empty where there is none to give. None of the texts is safe to print as it is:
    they hold words of the candidate.
    """

    kind: Kind
    name: str
    what: str
    remedy: str

    def __str__(self) -> str:
        """Both halves, on one line."""
        return " ".join(f"{self.what}; {self.remedy}".split())

    def at_a_gate(self, *, python: str) -> str:
        """Both halves for a command that takes no ``--env``, and calls ``--python`` `python`."""
        remedy = self.remedy.replace("say --python", f"say {python}")
        remedy = re.sub(r": --env .*=VALUE, or", " by", remedy)
        return str(replace(self, remedy=remedy))


_LOADER: Final = re.compile(r"Fail to load '[^']*' module\. ?|^_AgentLoadError: ")
"""What the framework's loader puts before what a module said."""


def missing(failure: Failure) -> Missing:
    """What is missing, by the first rule that knows."""
    failure = replace(failure, detail=_LOADER.sub("", failure.detail))
    for rule in _RULES:
        if (found := rule(failure)) is not None:
            return found
    return Missing(
        kind=Kind.CODE,
        name="",
        what=f"its import raised {_MODELS_OWN.sub('', failure.detail)}",
        remedy="import it by hand to see why",
    )


_INSTALL: Final = "install the agent's requirements where Backstop runs, or say --python"
_NO_MODULE: Final = re.compile(r"No module named '([\w.]+)'")
_TO_INSTALL: Final = re.compile(r"pip3? install (?:-\S+ )*[\"'`]?([\w.\[\],-]*[\w\]])")
_NOT_IN: Final = re.compile(r"cannot import name '(\w+)' from '([\w.]+)'( \(unknown location\))?")
_IS_OWN: Final = re.compile(r"\(/(?!.*(?:site|dist)-packages/)(?!.*/lib/python)[^)]*\)")
_VERSION: Final = "install the version of it that the agent's requirements name, or say --python"


def _package(failure: Failure) -> Missing | None:
    text = failure.detail
    if (found := _NO_MODULE.search(text)) is not None:
        what = f"the module {found[1]} is not installed"
        return Missing(kind=Kind.PACKAGE, name=found[1], what=what, remedy=_INSTALL)
    if (found := _NOT_IN.search(text)) is not None and found[3]:
        # Several packages share one folder, and the one that brings this is not there.
        name = f"{found[2]}.{found[1]}"
        what = f"the module {name} is not installed"
        return Missing(kind=Kind.PACKAGE, name=name, what=what, remedy=_INSTALL)
    if found is not None and _IS_OWN.search(text) is not None:
        what = f"its own module {found[2]} has no {found[1]}"
        remedy = "define it there, or import it from where it is"
        return Missing(kind=Kind.CODE, name=found[2], what=what, remedy=remedy)
    if found is not None:
        what = f"the module {found[2]} that is installed has no {found[1]}"
        return Missing(kind=Kind.PACKAGE, name=found[2], what=what, remedy=_VERSION)
    if (found := _TO_INSTALL.search(text)) is not None:
        what = f"the package {found[1]} is not installed"
        return Missing(kind=Kind.PACKAGE, name=found[1], what=what, remedy=_INSTALL)
    return None


_NAME: Final = r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+|[A-Z]{3,}"
_KEY_ERROR: Final = re.compile(r"KeyError: ['\"](\w+)['\"]")
_ASKED: Final = re.compile(
    r"(?:environ\s*(?:\[|\.(?:get|pop|setdefault)\()|getenv\(|env\()\s*['\"](\w+)['\"]"
)
_OF_A_MODEL: Final = re.compile(r"validation errors? for (\w+) ")
_REQUIRED: Final = re.compile(r"(\w[\w.]*) Field required \[type=missing")
_SETTINGS: Final = re.compile(r"\w*(?:Settings|Config|Configuration|Env|Environment)")
_MODELS_OWN: Final = re.compile(
    r" ?\[type=\w+, input_value=.*?, input_type=\w+\]"
    r"| ?For further information visit https://errors\.pydantic\.dev/\S*\w"
)
"""What a model says of itself beside what is wrong."""
_WORDS: Final = re.compile(
    r"environ|env(?:ironment)?[ _-]?var|\bset\b|\bunset\b|missing|required|must|provide|not found"
    r"|undefined|api[ _-]?key|\.env\b",
    re.IGNORECASE,
)
_LOOKS_SET: Final = re.compile(rf"(?<![\w.])({_NAME})(?![\w(])")
_GOOGLES_KEY: Final = re.compile(r"Missing key inputs argument|No API key was provided")
"""What Google's client says without naming the variable, or with several to choose from."""

_GOOGLES_PROJECT: Final = re.compile(
    r"Unable to find your project|[Pp]roject (?:was not passed and )?could not be "
    r"(?:automatically )?determined"
)

_MANNERLESS: Final = re.compile(r"^(?:HTTP|JSON|YAML|URL|URI|SSL|TLS|NOT|THE|ERROR|API|ADK|LLM)$")


def _variable(failure: Failure) -> Missing | None:
    names = _required(failure.detail)
    if len(names) > 1:
        return Missing(
            kind=Kind.VARIABLE,
            name=names[0],
            what=f"the environment variables {', '.join(names)} are not set",
            remedy="give each a harmless value: --env NAME=VALUE, or sandbox.env in backstop.yaml",
        )
    name = names[0] if names else _variable_of(failure)
    if name is None:
        return None
    return Missing(
        kind=Kind.VARIABLE,
        name=name,
        what=f"the environment variable {name} is not set",
        remedy=f"give it a harmless value: --env {name}=VALUE, or sandbox.env in backstop.yaml",
    )


def _required(detail: str) -> tuple[str, ...]:
    """What a class of settings wants from the environment and does not find, each once."""
    model = _OF_A_MODEL.search(detail)
    if model is None:
        return ()
    found = dict.fromkeys(name.upper() for name in _REQUIRED.findall(detail))
    is_settings = "input_value={}" in detail or _SETTINGS.fullmatch(model[1])
    return tuple(found) if is_settings else ()


def _variable_of(failure: Failure) -> str | None:
    asked = _ASKED.search(failure.line)
    if (found := _KEY_ERROR.search(failure.detail)) is not None:
        is_asked = asked is not None or "environ" in failure.line
        return found[1] if is_asked or re.fullmatch(_NAME, found[1]) else None
    if _OF_A_MODEL.search(failure.detail) is not None:
        return None
    if asked is not None:
        return asked[1]
    if _GOOGLES_KEY.search(failure.detail):
        return "GOOGLE_API_KEY"
    if _GOOGLES_PROJECT.search(failure.detail):
        return "GOOGLE_CLOUD_PROJECT"
    if _WORDS.search(failure.detail):
        for found in _LOOKS_SET.finditer(failure.detail):
            if _MANNERLESS.match(found[1]) is None:
                return found[1]
    return None


_CREDENTIALS: Final = re.compile(
    r"DefaultCredentialsError|default credentials were not found|NoCredentialsError"
)
_NETWORK: Final = re.compile(
    r"Barred|may not|ConnectionError|ConnectError|ConnectTimeout|gaierror|URLError|Network is "
    r"unreachable|Name or service not known|Temporary failure in name resolution|Max retries"
    r"|TransportError|ServiceUnavailable|RetryError"
)
_INTO_A_FUNCTION: Final = "move that from the module into the function that needs it"


def _credentials(failure: Failure) -> Missing | None:
    if _CREDENTIALS.search(failure.detail) is None:
        return None
    return Missing(
        kind=Kind.CREDENTIALS,
        name="",
        what="its import asks for credentials, and a sandbox has none",
        remedy=_INTO_A_FUNCTION,
    )


_WRITES: Final = re.compile(r"is barred in a replay: writes (.+)")


def _written(failure: Failure) -> Missing | None:
    if (found := _WRITES.search(failure.detail)) is None:
        return None
    return Missing(
        kind=Kind.FILE,
        name=found[1],
        what=f"its import writes {found[1]}, and a sandbox writes nowhere but below TMPDIR",
        remedy=_INTO_A_FUNCTION,
    )


def _network(failure: Failure) -> Missing | None:
    if _NETWORK.search(failure.detail) is None:
        return None
    return _outside(failure.detail)


def _attempted(failure: Failure) -> Missing | None:
    """What it was barred from may be why, where nothing else is: both are told."""
    if not failure.attempts:
        return None
    return _outside(f"it tried {failure.attempts[0]}, and ended with {failure.detail}")


def _outside(told: str) -> Missing:
    return Missing(
        kind=Kind.NETWORK,
        name="",
        what=f"its import wants what no sandbox has, like a network or a process ({told})",
        remedy=_INTO_A_FUNCTION,
    )


_NO_FILE: Final = re.compile(r"FileNotFoundError: .*?['\"]([^'\"]+)['\"]")


def _newer(failure: Failure) -> Missing | None:
    """Code that cannot be read may be another Python's, if its project asks for a certain one."""
    if "SyntaxError" not in failure.detail or not failure.python:
        return None
    return Missing(
        kind=Kind.FRAMEWORK,
        name="",
        what=f"this Python cannot read it ({failure.detail})",
        remedy=f"its project asks for Python {failure.python}: say --python",
    )


def _file(failure: Failure) -> Missing | None:
    if (found := _NO_FILE.search(failure.detail)) is None:
        return None
    return Missing(
        kind=Kind.FILE,
        name=found[1],
        what=f"the file {found[1]} is not there",
        remedy="commit it; a relative path begins at the project's folder, the nearest upwards "
        "with a pyproject.toml, setup.py or requirements.txt, else at the checkout's top",
    )


def _framework(failure: Failure) -> Missing | None:
    if failure.slug not in {"adk-missing", "clock-missing", "agent-adk-too-old"}:
        return None
    return Missing(
        kind=Kind.FRAMEWORK, name="google-adk", what=failure.detail, remedy="or say --python"
    )


def _time(failure: Failure) -> Missing | None:
    if failure.slug != "agent-hangs":
        return None
    return Missing(
        kind=Kind.TIME,
        name="",
        what="its import does not come to an end",
        remedy="find what it waits for there, and " + _INTO_A_FUNCTION,
    )


def _ended(failure: Failure) -> Missing | None:
    if failure.slug == "agent-import" and "sys.exit(" not in failure.detail:
        return None
    return Missing(
        kind=Kind.CODE, name="", what=failure.detail, remedy="import it by hand to see why"
    )


_RULES: Final[tuple[Callable[[Failure], Missing | None], ...]] = (
    _framework,
    _newer,
    _package,
    _variable,
    _credentials,
    _written,
    _network,
    _file,
    _attempted,
    _time,
    _ended,
)
