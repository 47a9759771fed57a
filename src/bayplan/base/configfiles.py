"""Files that people write to say what they want: YAML or JSON, read strictly.

Every error names the file, the line and the field. A field that nobody knows is an error too: what
is written and not heeded is worse than what is refused. `read` and `parse` give a document its
shape; whoever then finds no sense in a field raises `FieldProblem`, and `Document.error` knows the
line.
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
    """A file that cannot be used: where, which field, and why."""

    def __init__(self, source: str, line: int, field: str, problem: str) -> None:
        place = f"{source}:{line}" if line else source
        super().__init__(printable(": ".join(part for part in (place, field, problem) if part)))
        self.line = line
        self.field = field


class FieldProblem(Exception):  # noqa: N818 - it becomes an error once its line is known
    """Something wrong with a field."""

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field}: {problem}" if field else problem)
        self.field = field
        self.problem = problem


class Places:
    """Where each field of a document stands."""

    def __init__(self, text: bytes) -> None:
        self._root = yaml.compose(text, Loader=yaml.CSafeLoader)

    def line(self, path: str) -> int:
        """The line of a field such as `nodeGroups[0].zones`, or of the nearest one around it."""
        node, line = self._root, 1
        for name, index in _STEP.findall(path):
            found = _child(node, name, index)
            if found is None:
                break
            node, line = found
        return line


@dataclass(frozen=True, slots=True)
class Document(Generic[T]):
    """What a file says, in the shape that was asked for."""

    source: str
    value: T
    places: Places

    def error(self, problem: FieldProblem) -> ConfigFileError:
        """The problem with its place."""
        line = self.places.line(problem.field)
        return ConfigFileError(self.source, line, problem.field, problem.problem)


def read_text(path: Path) -> bytes:
    """What stands in a file; ConfigFileError if it cannot be read."""
    try:
        with path.open("rb") as stream:
            text = stream.read(MAX_BYTES + 1)
    except OSError as error:
        raise ConfigFileError(str(path), 0, "", error.strerror or str(error)) from None
    if len(text) > MAX_BYTES:
        raise ConfigFileError(str(path), 0, "", f"larger than {MAX_BYTES} bytes")
    return text


def parse(text: bytes, source: str, shape: type[T]) -> Document[T]:
    """The one document in a text, of that shape; an empty text says nothing at all: `{}`."""
    value = _yaml(text, source)
    places = Places(text)
    try:
        return Document(source, shaped({} if value is None else value, shape), places)
    except FieldProblem as problem:
        line = places.line(problem.field)
        raise ConfigFileError(source, line, problem.field, problem.problem) from None


def shaped(value: object, shape: type[T], field: str = "") -> T:
    """A plain value as that shape; FieldProblem, under `field`, where it is not."""
    try:
        return msgspec.convert(value, shape)
    except msgspec.ValidationError as error:
        message = str(error)
        unknown = _UNKNOWN.search(message)
        inner, found = locate(value, message)
        path, annotation = _joined(field, inner), _at(shape, inner)
        if unknown:
            known = suggestion(unknown[1], _fields(annotation))
            said = f"there is no such field{known}"
            raise FieldProblem(_joined(path, unknown[1]), said) from None
        if what := _called(shape, pattern(message)):
            raise FieldProblem(path, f"expected {what}, got {str(found)[:80]!r}") from None
        choices = _choices(annotation)
        meant = suggestion(found, choices) if choices and isinstance(found, str) else ""
        raise FieldProblem(path, reason(message) + meant) from None


def refuse_unknown(value: object, shape: type[msgspec.Struct], field: str) -> None:
    """FieldProblem for a field that an API type, which skips them, does not know."""
    known = {one.encode_name: one.type for one in msgspec.structs.fields(shape)}
    for name, inner in value.items() if isinstance(value, dict) else ():
        place = _joined(field, str(name))
        if name not in known:
            said = f"there is no such field{suggestion(str(name), known)}"
            raise FieldProblem(place, said)
        for part in _structs_in(known[name]):
            many = isinstance(inner, list)
            for index, one in enumerate(inner if many else [inner]):
                refuse_unknown(one, part, f"{place}[{index}]" if many else place)


def _called(shape: object, regex: str) -> str:
    """What people call texts that match; nothing if the shape has no word for it."""
    if not regex:
        return ""
    if get_origin(shape) is Annotated:
        for one in get_args(shape)[1:]:
            if isinstance(one, msgspec.Meta) and one.pattern == regex:
                return one.description or ""
    inner = get_args(shape)
    if isinstance(shape, type) and issubclass(shape, msgspec.Struct):
        inner = tuple(get_type_hints(shape, include_extras=True).values())
    return next((said for one in inner if (said := _called(one, regex))), "")


def _at(shape: object, path: str) -> object:
    """What the field at a path should be; None if that cannot be told."""
    for name, _ in _STEP.findall(path):
        if name:
            inner = _structs_in(shape)
            known = {one.encode_name: one.type for one in _struct_fields(inner)}
            shape = known.get(name)
    return shape


def _struct_fields(found: list[type[msgspec.Struct]]) -> list[msgspec.structs.FieldInfo]:
    return list(msgspec.structs.fields(found[0])) if found else []


def _fields(annotation: object) -> list[str]:
    return [one.encode_name for one in _struct_fields(_structs_in(annotation))]


def _choices(annotation: object) -> list[str]:
    """The words that a field may be, if it may be only some."""
    if get_origin(annotation) is Literal:
        return [str(one) for one in get_args(annotation)]
    return [found for part in get_args(annotation) for found in _choices(part)]


def _structs_in(annotation: object) -> list[type[msgspec.Struct]]:
    """The API type that a field holds, itself, or-nothing or in a list."""
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
