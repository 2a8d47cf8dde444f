"""Gemini by its own client, asked in place of a candidate that has no network.

The key comes from the environment of whoever starts Backstop and goes into no message. What
leaves is the request and nothing else; what comes back is bounded in size and in time, and
whatever is wrong with it is a reason, never an exception.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

import msgspec

from backstop.errors import MissingExtra
from backstop.ports import ModelRequest, ModelSaid, ModelSilent

if TYPE_CHECKING:
    from google import genai
    from google.genai import types

    from backstop.adapters.gemini.bounded import Bounds

KEYS: Final = ("GOOGLE_API_KEY", "GEMINI_API_KEY")
VERTEX: Final = ("GOOGLE_GENAI_USE_VERTEXAI", "GOOGLE_GENAI_USE_ENTERPRISE")
_PROJECT: Final = {"project": "GOOGLE_CLOUD_PROJECT", "location": "GOOGLE_CLOUD_LOCATION"}
_TRIES: Final = 3
_BUSY: Final = frozenset({429, 503})
_LONGEST_WAIT_S: Final = 30.0
_SHOWN: Final = 200
_NOT_THEIRS: Final = frozenset(
    {"cached_content", "http_options", "labels", "should_return_http_response"}
)
"""Settings that say where a request goes, with what, and at whose cost: whoever pays says so."""

_REMEMBERED: Final = 4_096
"""Contents that are remembered, after which the memory starts anew."""


class _Told(msgspec.Struct):
    """A request's parts, left as they are written."""

    contents: list[msgspec.Raw] = []
    config: msgspec.Raw = msgspec.Raw(b"{}")


def missing_key(environ: Mapping[str, str]) -> str:
    """Why nobody can be asked, by what the environment lacks; empty if somebody can."""
    if any(environ.get(name) for name in KEYS):
        return ""
    if _is_vertex(environ):
        return ""
    return "no model can be asked: neither GOOGLE_API_KEY nor GEMINI_API_KEY is set"


def _is_vertex(environ: Mapping[str, str]) -> bool:
    return any(environ.get(name, "").lower() in {"1", "true"} for name in VERTEX)


class GeminiBroker:
    """Asks Gemini, or what speaks like it at `base_url`; `timeout_s` bounds each call.

    `wait` sleeps for so many seconds; `now` is a clock that never goes back, in seconds.
    Raises `MissingExtra` where the client is not installed.
    """

    def __init__(
        self,
        environ: Mapping[str, str],
        *,
        base_url: str | None = None,
        timeout_s: float = 60.0,
        wait: Callable[[float], None],
        now: Callable[[], float],
    ) -> None:
        if importlib.util.find_spec("google.genai") is None:
            raise MissingExtra("asking a live model needs `pip install 'backstop-gate[adk]'`.")
        self._secrets = [environ[name] for name in KEYS if environ.get(name)]
        self._project = {name: environ.get(variable) for name, variable in _PROJECT.items()}
        self._is_vertex = _is_vertex(environ)
        self._base_url = base_url
        self._timeout_s = timeout_s
        self._wait = wait
        self._now = now
        self._opened: tuple[genai.Client, Bounds] | None = None
        self._read: dict[bytes, types.Content] = {}

    def ask(self, request: ModelRequest) -> ModelSaid | ModelSilent:
        """Ask once. A model that is busy is asked again, a few times and within the time."""
        from backstop.adapters.gemini.answering import said

        deadline = self._now() + self._timeout_s
        try:
            client, bounds = self._client()
            asked = self._spelled(request)
        except Exception as error:  # noqa: BLE001  # credentials, or a request the client refuses
            return self._silent(f"the request cannot be sent: {_line(error)}")
        for again in range(_TRIES):
            bounds.begin(deadline)
            try:
                return said(client.models.generate_content(**asked))
            except Exception as error:  # noqa: BLE001  # the client raises whatever its parts do
                pause = self._pause(error, again)
                if pause is None or self._now() + pause >= deadline:
                    return self._silent(_told(error, self._timeout_s))
            self._wait(pause)
        return ModelSilent(why="the model is busy")  # pragma: no cover  # the last try returns

    def close(self) -> None:
        """Close its connections."""
        opened, self._opened = self._opened, None
        if opened is not None:
            opened[1].close()

    def _client(self) -> tuple[genai.Client, Bounds]:
        if self._opened is None:
            from backstop.adapters.gemini.bounded import Bounds, opened

            bounds = Bounds(now=self._now)
            client = opened(self._base_url, self._timeout_s, bounds, **self._who())
            self._opened = client, bounds
        return self._opened

    def _who(self) -> dict[str, str | bool | None]:
        """By whose name is asked. Where both are there, the platform was chosen on purpose."""
        if self._is_vertex:
            return {"vertexai": True, **self._project}
        return {"vertexai": False, "api_key": self._secrets[0]}

    def _spelled(self, request: ModelRequest) -> dict[str, Any]:
        """The request in the client's own values."""
        from google.genai import types

        told = msgspec.json.decode(request.body, type=_Told)
        config = types.GenerateContentConfig.model_validate_json(bytes(told.config))
        config.automatic_function_calling = types.AutomaticFunctionCallingConfig(disable=True)
        # The harness leaves them out, but runs beside code that nobody has vouched for.
        for name in config.model_fields_set.intersection(_NOT_THEIRS):
            setattr(config, name, None)
        if any(getattr(tool, "mcp_servers", None) for tool in config.tools or ()):
            raise ValueError("it has the model's service call MCP servers by itself")
        contents = [self._content(bytes(one)) for one in told.contents]
        return {"model": request.model, "contents": contents, "config": config}

    def _content(self, text: bytes) -> types.Content:
        """A content; a conversation repeats what was said before, and reading it takes long."""
        known = self._read.get(text)
        if known is None:
            from google.genai import types

            if len(self._read) >= _REMEMBERED:
                self._read.clear()
            known = self._read[text] = types.Content.model_validate_json(text)
        return known

    def _pause(self, error: Exception, again: int) -> float | None:
        """Seconds after which to ask again; None where that is of no use."""
        if getattr(error, "code", None) not in _BUSY or again + 1 == _TRIES:
            return None
        headers = getattr(getattr(error, "response", None), "headers", None) or {}
        try:
            wanted = float(headers.get("retry-after", ""))
        except ValueError:
            wanted = 2.0**again
        return wanted if 0 <= wanted <= _LONGEST_WAIT_S else None

    def _silent(self, why: str) -> ModelSilent:
        for secret in self._secrets:
            why = why.replace(secret, "***")
        return ModelSilent(why=why)


def _told(error: Exception, timeout_s: float) -> str:
    """What went wrong, in a few words."""
    from backstop.adapters.gemini.bounded import OutOfBounds

    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, OutOfBounds):
            return str(cause)
        if "timeout" in type(cause).__name__.lower():
            return f"it did not answer within {timeout_s:g} s"
        cause = cause.__cause__ or cause.__context__
    code = getattr(error, "code", None)
    if code in _BUSY:
        return f"it is busy and stays so (HTTP {code})"
    if isinstance(code, int):
        return f"it refused the request (HTTP {code}: {_line(getattr(error, 'message', ''))})"
    if isinstance(error, ConnectionError | OSError) or "http" in type(error).__module__:
        return f"the connection failed ({type(error).__name__})"
    return f"its answer cannot be read ({type(error).__name__})"


def _line(text: object) -> str:
    words = " ".join(str(text).split())
    return words if len(words) <= _SHOWN else f"{words[:_SHOWN]}..."
