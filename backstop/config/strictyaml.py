"""YAML read strictly: every value is what it looks like, and every value knows its line.

YAML 1.1 reads ``no`` as false, ``2024-05-20`` as a date and ``1:30`` as ninety; keys may
repeat, and aliases may blow ten lines up to gigabytes. None of that helps a person who
declares which side effects of an agent may go out, so plain scalars follow YAML 1.2's
core schema and the rest is refused with its line.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias, cast

import yaml

from backstop.errors import ConfigError

Plain: TypeAlias = bool | int | float | str | list["Plain"] | dict[str, "Plain"] | None
Place: TypeAlias = tuple[str | int, ...]

MAX_BYTES: Final = 1024 * 1024
MAX_DEPTH: Final = 40

_STR: Final = "tag:yaml.org,2002:str"
_NULL: Final = re.compile(r"null|~|", re.ASCII)
_BOOL: Final = re.compile(r"true|false", re.ASCII)
_INT: Final = re.compile(r"[-+]?(0|[1-9][0-9]{0,3999})", re.ASCII)
_FLOAT: Final = re.compile(
    r"[-+]?(0|[1-9][0-9]*)(\.[0-9]+([eE][-+]?[0-9]{1,2})?|[eE][-+]?[0-9]{1,2})", re.ASCII
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A parsed file: its value, and the line (from 1) of each key and item."""

    name: str
    value: Plain
    lines: Mapping[Place, int]

    def at(self, place: Sequence[str | int]) -> str:
        """``file:line`` of `place`, or of the nearest thing around it that stands in the file."""
        where: Place = tuple(place)
        while where and where not in self.lines:
            where = where[:-1]
        return f"{self.name}:{self.lines.get(where, 1)}"


class _Loader(yaml.SafeLoader):
    """Composes nodes only; plain scalars are resolved here, not by YAML 1.1's table."""

    yaml_implicit_resolvers: dict[str, object] = {}  # noqa: RUF012


def parse(text: str, *, name: str) -> Document:
    """The one document of `text`.

    Raises `ConfigError` with file and line: ``config-tab`` for a tab in an indentation,
    ``config-duplicate-key``, ``config-syntax`` for whatever is not plain YAML.
    """
    for number, line in enumerate(text.splitlines(), start=1):
        if "\t" in line[: len(line) - len(line.lstrip())]:
            raise ConfigError(
                f"{name}:{number}: a tab in the indentation; YAML knows only blanks: use two "
                "for each level",
                slug="config-tab",
            )
    try:
        node = _Loader(text).get_single_node()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        at = 1 if mark is None else mark.line + 1
        raise ConfigError(
            f"{name}:{at}: not valid YAML: {error.problem}; correct that line",
            slug="config-syntax",
        ) from error
    except yaml.YAMLError as error:
        raise ConfigError(
            f"{name}: not valid YAML: {error}; save the file as plain UTF-8 text",
            slug="config-syntax",
        ) from error
    except RecursionError as error:
        raise ConfigError(
            f"{name}: nested too deeply to read; a configuration has a handful of levels",
            slug="config-syntax",
        ) from error
    builder = _Builder(name)
    return Document(
        name=name,
        value=None if node is None else builder.build(node, ()),
        lines=builder.lines,
    )


class _Builder:
    """Turns nodes into plain values, noting where each one stands."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.lines: dict[Place, int] = {}
        self._seen: set[int] = set()

    def build(self, node: yaml.Node, place: Place) -> Plain:
        self.lines.setdefault(place, node.start_mark.line + 1)
        if id(node) in self._seen:
            raise self._refusal(node, "aliases (`*name`) are not supported", "write it out")
        self._seen.add(id(node))
        if len(place) > MAX_DEPTH:
            raise self._refusal(node, f"nested deeper than {MAX_DEPTH} levels", "flatten it")
        match node:
            case yaml.MappingNode():
                return self._mapping(node, place)
            case yaml.SequenceNode():
                self._check_tag(node, "tag:yaml.org,2002:seq")
                return [self.build(item, (*place, i)) for i, item in enumerate(node.value)]
            case _:  # a scalar: PyYAML has no fourth kind
                return self._scalar(cast("yaml.ScalarNode", node))

    def _mapping(self, node: yaml.MappingNode, place: Place) -> dict[str, Plain]:
        self._check_tag(node, "tag:yaml.org,2002:map")
        built: dict[str, Plain] = {}
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            if not isinstance(key_node, yaml.ScalarNode):
                raise self._refusal(key_node, "a key must be plain text", "quote it")
            key = str(key_node.value)
            if key in built:
                first = self.lines[*place, key]
                raise ConfigError(
                    f"{self.name}:{line}: {key!r} stands twice, here and in line {first}; "
                    "keep one of them",
                    slug="config-duplicate-key",
                )
            self.lines[*place, key] = line
            built[key] = self.build(value_node, (*place, key))
        return built

    def _scalar(self, node: yaml.ScalarNode) -> Plain:
        self._check_tag(node, _STR)
        text = str(node.value)
        if node.style is not None:
            return text
        if _NULL.fullmatch(text):
            return None
        if _BOOL.fullmatch(text):
            return text == "true"
        if _INT.fullmatch(text):
            return int(text)
        if _FLOAT.fullmatch(text):
            return float(text)
        return text

    def _check_tag(self, node: yaml.Node, usual: str) -> None:
        if node.tag != usual:
            raise self._refusal(node, f"the tag {node.tag!r} is not supported", "leave it out")

    def _refusal(self, node: yaml.Node, what: str, remedy: str) -> ConfigError:
        return ConfigError(
            f"{self.name}:{node.start_mark.line + 1}: {what}; {remedy}", slug="config-syntax"
        )
