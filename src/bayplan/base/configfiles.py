"""Configuration files in YAML or JSON, read strictly.

Every error names the file, the line and the field. An unknown field is an error too: a setting that
is silently ignored is worse than one that is refused. `parse` converts a document to the expected
type. Code that later finds an invalid value raises `FieldProblem`, and `ConfigDocument.error` adds
the file and the line.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Generic, Literal, TypeVar, get_args, get_origin, get_type_hints

import msgspec
import yaml

from bayplan.base.decode_errors import locate, pattern, reason
from bayplan.base.suggestions import suggestion
from bayplan.base.values import JsonValue, printable
from bayplan.base.yaml_values import YamlError, build

T = TypeVar("T")
MAX_BYTES = 16 << 20
_UNKNOWN = re.compile(r"unknown field `([^`]*)`")
_STEP = re.compile(r"\.?([^.\[\]]+)|\[(\d+)\]")


class ConfigFileError(ValueError):
    """A configuration file that cannot be used: the place, the field and the reason."""

    def __init__(self, source: str, line: int, field: str, problem: str) -> None:
        place = f"{source}:{line}" if line else source
        super().__init__(printable(": ".join(part for part in (place, field, problem) if part)))
        self.line = line
        self.field = field


class FieldProblem(Exception):  # noqa: N818 - it becomes an error once its line is known
    """An invalid field; `ConfigDocument.error` adds the file and the line."""

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field}: {problem}" if field else problem)
        self.field = field
        self.problem = problem


class FieldLines:
    """The line of each field of a document."""

    def __init__(self, text: bytes) -> None:
        self._root = yaml.compose(text, Loader=yaml.CSafeLoader)

    def line(self, path: str) -> int:
        """Return the line of a field such as `nodeGroups[0].zones`, or of its nearest parent."""
        node, line = self._root, 1
        for name, index in _STEP.findall(path):
            found = _child(node, name, index)
            if found is None:
                break
            node, line = found
        return line


@dataclass(frozen=True, slots=True)
class ConfigDocument(Generic[T]):
    """The content of a file, converted to the expected type."""

    source: str
    value: T
    lines: FieldLines

    def error(self, problem: FieldProblem) -> ConfigFileError:
        """Return the problem with its file and line."""
        line = self.lines.line(problem.field)
        return ConfigFileError(self.source, line, problem.field, problem.problem)


def read_text(path: Path) -> bytes:
    """Return the content of a file; raise ConfigFileError if it cannot be read."""
    try:
        with path.open("rb") as stream:
            text = stream.read(MAX_BYTES + 1)
    except OSError as error:
        raise ConfigFileError(str(path), 0, "", error.strerror or str(error)) from None
    if len(text) > MAX_BYTES:
        raise ConfigFileError(str(path), 0, "", f"larger than {MAX_BYTES} bytes")
    return text


def parse(text: bytes, source: str, expected: type[T]) -> ConfigDocument[T]:
    """Return the single document in a text as the expected type; an empty text is `{}`."""
    value = _yaml(text, source)
    lines = FieldLines(text)
    try:
        return ConfigDocument(
            source, convert_value({} if value is None else value, expected), lines
        )
    except FieldProblem as problem:
        line = lines.line(problem.field)
        raise ConfigFileError(source, line, problem.field, problem.problem) from None


def convert_value(value: object, expected: type[T], field: str = "") -> T:
    """Convert a plain value to a type; raise FieldProblem, below `field`, if it does not match."""
    try:
        return msgspec.convert(value, expected)
    except msgspec.ValidationError as error:
        message = str(error)
        unknown = _UNKNOWN.search(message)
        inner, found = locate(value, message)
        path, annotation = _joined(field, inner), _annotation_at(expected, inner)
        if unknown:
            known = suggestion(unknown[1], _fields(annotation))
            raise FieldProblem(_joined(path, unknown[1]), f"unknown field{known}") from None
        if description := _description(expected, pattern(message)):
            raise FieldProblem(path, f"expected {description}, got {str(found)[:80]!r}") from None
        choices = _choices(annotation)
        meant = suggestion(found, choices) if choices and isinstance(found, str) else ""
        raise FieldProblem(path, reason(message) + meant) from None


def refuse_unknown_fields(value: object, expected: type[msgspec.Struct], field: str) -> None:
    """Raise FieldProblem for a field that an API type does not have and its decoder would skip."""
    known = {info.encode_name: info.type for info in msgspec.structs.fields(expected)}
    for name, inner in value.items() if isinstance(value, dict) else ():
        place = _joined(field, str(name))
        if name not in known:
            raise FieldProblem(place, f"unknown field{suggestion(str(name), known)}")
        for part in _structs_in(known[name]):
            is_list = isinstance(inner, list)
            for index, item in enumerate(inner if is_list else [inner]):
                refuse_unknown_fields(item, part, f"{place}[{index}]" if is_list else place)


def _description(annotation: object, regex: str) -> str:
    """Return the description that a type gives for a pattern; empty if it gives none."""
    if not regex:
        return ""
    if get_origin(annotation) is Annotated:
        for meta in get_args(annotation)[1:]:
            if isinstance(meta, msgspec.Meta) and meta.pattern == regex:
                return meta.description or ""
    inner = get_args(annotation)
    if isinstance(annotation, type) and issubclass(annotation, msgspec.Struct):
        inner = tuple(get_type_hints(annotation, include_extras=True).values())
    return next((found for part in inner if (found := _description(part, regex))), "")


def _annotation_at(annotation: object, path: str) -> object:
    """Return the type of the field at a path; None if it is unknown."""
    for name, _ in _STEP.findall(path):
        if name:
            inner = _structs_in(annotation)
            known = {info.encode_name: info.type for info in _struct_fields(inner)}
            annotation = known.get(name)
    return annotation


def _struct_fields(found: list[type[msgspec.Struct]]) -> list[msgspec.structs.FieldInfo]:
    return list(msgspec.structs.fields(found[0])) if found else []


def _fields(annotation: object) -> list[str]:
    return [info.encode_name for info in _struct_fields(_structs_in(annotation))]


def _choices(annotation: object) -> list[str]:
    """Return the allowed values of a field that is an enumeration."""
    if get_origin(annotation) is Literal:
        return [str(choice) for choice in get_args(annotation)]
    return [found for part in get_args(annotation) for found in _choices(part)]


def _structs_in(annotation: object) -> list[type[msgspec.Struct]]:
    """Return the API types in an annotation: plain, optional or in a list."""
    if isinstance(annotation, type) and issubclass(annotation, msgspec.Struct):
        return [annotation]
    return [found for part in get_args(annotation) for found in _structs_in(part)]


def _joined(parent: str, child: str) -> str:
    dot = "." if parent and child and not child.startswith("[") else ""
    return f"{parent}{dot}{child}"


def _yaml(text: bytes, source: str) -> JsonValue:
    try:
        text.decode()
        return build(yaml.parse(text, Loader=yaml.CSafeLoader))
    except YamlError as error:
        raise ConfigFileError(source, error.line, "", str(error)) from None
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 0
        raise ConfigFileError(source, line, "", f"not YAML: {error.problem}") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigFileError(source, 0, "", f"not YAML: {error}"[:200]) from None


def _child(node: yaml.Node | None, name: str, index: str) -> tuple[yaml.Node, int] | None:
    if isinstance(node, yaml.SequenceNode) and index and int(index) < len(node.value):
        item = node.value[int(index)]
        return item, item.start_mark.line + 1
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if key.value == name:
                return value, key.start_mark.line + 1
    return None
