"""Files that people write: read whole, and their first fault as a line to act on."""

from __future__ import annotations

from pathlib import Path

from pydantic import ValidationError

from backstop.config.strictyaml import MAX_BYTES, Document
from backstop.errors import ConfigError


def text_of(path: Path, *, missing: str) -> str:
    """The text of the file `path`; `missing` says what to do where there is none.

    Raises `ConfigError`: ``config-missing``, ``config-unreadable``.
    """
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except FileNotFoundError as error:
        raise ConfigError(
            f"{path}: there is no such file; {missing}", slug="config-missing"
        ) from error
    except OSError as error:
        raise ConfigError(
            f"{path}: cannot be read: {error.strerror}; name a readable file with --config",
            slug="config-unreadable",
        ) from error
    if len(data) > MAX_BYTES:
        raise ConfigError(
            f"{path}: larger than {MAX_BYTES} bytes; that is no configuration",
            slug="config-unreadable",
        )
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ConfigError(
            f"{path}:{line}: not UTF-8 text; save it as UTF-8", slug="config-unreadable"
        ) from error


def explained(error: ValidationError, document: Document, *, schema: str) -> ConfigError:
    """The first fault of a validation, in one line; `schema` is the page that tells the form."""
    faults = sorted(error.errors(), key=lambda fault: fault["type"] != "extra_forbidden")
    fault = faults[0]
    # A union tells every branch's fault; the path without branch names is where it stands.
    place: list[str | int] = []
    for part in fault["loc"]:
        if (*place, part) in document.lines:
            place.append(part)
    spot = ".".join(map(str, fault["loc"] if fault["type"] == "missing" else place))
    more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
    if fault["type"] == "extra_forbidden":
        return ConfigError(
            f"{document.at(place)}: unknown key {spot!r}; correct its spelling or remove it{more}",
            slug="config-unknown-key",
        )
    message = fault["msg"].removeprefix("Value error, ")
    if fault["type"] == "too_short":
        message = "is empty; it needs at least one entry"
    return ConfigError(
        f"{document.at(place)}: {spot or 'the file'}: {message}; see {schema}{more}",
        slug="config-value",
    )
