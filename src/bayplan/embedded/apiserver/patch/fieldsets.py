"""Sets of fields, as trees: who owns what in an object.

A tree maps path elements (`f:name`, `k:{"name":"a"}`, `v:"x"`, and `.` for an element itself) to
trees; an empty tree is a leaf. This is the form that `managedFields` has on the wire.
"""

from __future__ import annotations

from collections.abc import Iterator

from bayplan.embedded.apiserver.jsontypes import JsonObject, JsonValue, decode, encode
from bayplan.embedded.apiserver.patch.shapes import Part, Shape

FieldSet = dict[str, "FieldSet"]
Path = tuple[str, ...]


def fields_of(obj: JsonObject, shape: Shape) -> FieldSet:
    """Every field that an object sets."""
    return {f"f:{name}": _of_value(value, shape.child(name)) for name, value in obj.items()}


def _of_value(value: JsonValue, part: Part) -> FieldSet:
    if part.atomic:
        return {}
    if isinstance(value, dict):
        return fields_of(value, part.shape)
    if isinstance(value, list) and (part.keys or part.is_set):
        return {element_key(item, part): _of_element(item, part) for item in value}
    return {}


def _of_element(item: JsonValue, part: Part) -> FieldSet:
    return {".": {}, **fields_of(item, part.shape)} if part.keys and isinstance(item, dict) else {}


def element_key(item: JsonValue, part: Part) -> str:
    """The path element of a list's element."""
    if part.is_set or not isinstance(item, dict):
        return "v:" + encode(item).decode()
    keys = {key: item.get(key, _KEY_DEFAULTS.get(key)) for key in sorted(part.keys)}
    return "k:" + encode({key: value for key, value in keys.items() if value is not None}).decode()


_KEY_DEFAULTS = {"protocol": "TCP"}


def leaves(fields: FieldSet, path: Path = ()) -> Iterator[Path]:
    """The paths of all leaves; an element itself (`.`) is its element's path."""
    for name, inner in fields.items():
        if name == ".":
            yield path
        elif not inner:
            yield (*path, name)
        else:
            yield from leaves(inner, (*path, name))


def tree_of(paths: set[Path]) -> FieldSet:
    """The tree whose leaves are given."""
    root: FieldSet = {}
    for path in sorted(paths):
        inner = root
        for name in path:
            inner = inner.setdefault(name, {})
        if path[-1].startswith("k:"):
            inner.setdefault(".", {})
    return root


def values_of(obj: JsonObject, shape: Shape) -> dict[Path, JsonValue]:
    """Every value inside an object by its path, in one pass; of equal elements the first counts."""
    found: dict[Path, JsonValue] = {}
    waiting: list[tuple[Path, JsonValue, Part]] = [((), obj, Part(shape))]
    while waiting:
        path, value, part = waiting.pop()
        if path:
            found.setdefault(path, value)
        if isinstance(value, dict):
            waiting += [
                ((*path, f"f:{name}"), item, part.shape.child(name)) for name, item in value.items()
            ]
        elif isinstance(value, list) and (part.keys or part.is_set):
            elements = [((*path, element_key(item, part)), item) for item in value]
            waiting += [(place, item, Part(part.shape)) for place, item in reversed(elements)]
    return found


def remove_all(obj: JsonValue, gone: FieldSet, part: Part) -> None:
    """Take out what the leaves of a tree name, in one pass."""
    if isinstance(obj, dict):
        for name, inner in gone.items():
            if inner and name[2:] in obj:
                remove_all(obj[name[2:]], inner, part.shape.child(name[2:]))
            else:
                obj.pop(name[2:], None)
    elif isinstance(obj, list):
        marks = [element_key(item, part) for item in obj]
        for item, mark in zip(obj, marks, strict=True):
            remove_all(item, gone.get(mark, {}), Part(part.shape))
        obj[:] = [item for item, mark in zip(obj, marks, strict=True) if gone.get(mark, True)]


def is_key(path: Path) -> bool:
    """Whether a path leads to a key of a list's element, without which the element is lost."""
    return (
        len(path) > 1
        and path[-2].startswith("k:")
        and path[-1][2:] in decode(path[-2][2:].encode())
    )


def spell(path: Path) -> str:
    """A path as a user reads it: `.spec.containers[name="a"].image`."""
    return "".join(_spell(name) for name in path)


def _spell(name: str) -> str:
    kind, rest = name[:2], name[2:]
    if kind == "f:":
        return f".{rest}"
    if kind == "k:":
        pairs = decode(rest.encode())
        return (
            "[" + ",".join(f"{key}={encode(value).decode()}" for key, value in pairs.items()) + "]"
        )
    return f"[{rest}]"
