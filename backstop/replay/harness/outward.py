"""Which calls reach outside of the process, by their dotted names.

What a library does nobody can tell from its name, so a library that is not on the list of
harmless ones counts as reaching outside.
"""

from __future__ import annotations

import sys
from typing import Final

WRITING: Final = "builtins.open to write"
"""What `open` is called where it writes."""

_STDLIB: Final = (
    "asyncio.create_subprocess_exec",
    "asyncio.create_subprocess_shell",
    "asyncio.open_connection",
    "asyncio.start_server",
    WRITING,
    "ftplib",
    "http.client",
    "imaplib",
    "multiprocessing",
    "nntplib",
    "os.exec",
    "os.fork",
    "os.kill",
    "os.makedirs",
    "os.mkdir",
    "os.popen",
    "os.posix_spawn",
    "os.remove",
    "os.rename",
    "os.replace",
    "os.rmdir",
    "os.spawn",
    "os.system",
    "os.unlink",
    "poplib",
    "shutil.copy",
    "shutil.move",
    "shutil.rmtree",
    "smtplib",
    "socket.create_connection",
    "socket.socket",
    "sqlite3.connect",
    "subprocess",
    "telnetlib",
    "urllib.request",
    "webbrowser",
    "xmlrpc.client",
)
_HARMLESS: Final = frozenset(
    {
        "_pytest",
        "absl",
        "attr",
        "attrs",
        "backstop",
        "backstop_harness",
        "bs4",
        "cachetools",
        "click",
        "dateutil",
        "deprecated",
        "dotenv",
        "fastapi",
        "flask",
        "jinja2",
        "jsonschema",
        "loguru",
        "markdown",
        "msgspec",
        "nest_asyncio",
        "numpy",
        "opentelemetry",
        "pandas",
        "pydantic",
        "pydantic_core",
        "pydantic_settings",
        "pytest",
        "pytz",
        "regex",
        "rich",
        "starlette",
        "structlog",
        "tabulate",
        "tenacity",
        "tiktoken",
        "time_machine",
        "toml",
        "typer",
        "typing_extensions",
        "tzlocal",
        "uvicorn",
        "yaml",
    }
)
_QUIET: Final = (
    "google.adk.",
    "google.auth._default.default",
    "google.auth.default",
    "google.genai.types",
    "google.protobuf",
    "vertexai.init",
    "logging.",
)
_DESCRIBING: Final = frozenset(
    {
        "sqlalchemy.engine.create.create_engine",
        "sqlalchemy.ext.asyncio.engine.create_async_engine",
        "sqlalchemy.ext.asyncio.session.async_sessionmaker",
        "sqlalchemy.orm._orm_constructors.mapped_column",
        "sqlalchemy.orm._orm_constructors.relationship",
        "sqlalchemy.orm.decl_api.declarative_base",
        "sqlalchemy.orm.session.sessionmaker",
        "sqlalchemy.sql.schema.Column",
        "sqlalchemy.sql.schema.ForeignKey",
        "sqlalchemy.sql.schema.Index",
        "sqlalchemy.sql.schema.MetaData",
        "sqlalchemy.sql.schema.Table",
        "sqlalchemy.sql.schema.UniqueConstraint",
    }
)
"""What describes a database, or will speak with one: to call it connects to nothing."""
_METHODS: Final = frozenset({"write_bytes", "write_text"})
"""Methods of whatever object: only a path has them."""
_MODELS: Final = (
    "anthropic.",
    "google.generativeai",
    "google.genai.",
    "litellm.",
    "openai.",
    "vertexai.generative_models",
    "vertexai.preview.generative_models",
)
_MODEL_METHODS: Final = frozenset(
    {"generate_content", "generate_content_async", "generate_content_stream"}
)
_SERVICES: Final = frozenset(
    {
        "add_events_to_memory",
        "add_memory",
        "add_session_to_memory",
        "append_event",
        "delete_artifact",
        "save_artifact",
    }
)


def is_outward(dotted: str) -> bool:
    """Whether a call by this name reaches outside; a name that begins with a dot is a method."""
    if dotted.startswith("."):
        return dotted[1:] in _METHODS
    if is_model(dotted):
        return True
    top = dotted.partition(".")[0]
    if top in _HARMLESS or dotted in _DESCRIBING or dotted.startswith(_QUIET):
        return False
    if top in sys.stdlib_module_names:
        return dotted.startswith(_STDLIB)
    return True


def is_model(dotted: str) -> bool:
    """Whether a call by this name asks a model, and no agent's."""
    if dotted.rpartition(".")[2] in _MODEL_METHODS:
        return True
    return dotted.startswith(_MODELS) and not dotted.startswith(_QUIET)


def is_service(dotted: str) -> bool:
    """Whether a call by this name writes to an artifact, memory or session service."""
    return dotted.rpartition(".")[2] in _SERVICES
