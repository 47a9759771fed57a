"""Types as a reference has them: for each a table of its fields, types, defaults and meanings."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import textwrap
import types
import typing
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import msgspec

from bayplan.base.durations import Seconds

_WORDS: dict[object, str] = {
    str: "text",
    int: "whole number",
    float: "number",
    bool: "true or false",
    object: "anything",
    Seconds: "duration",
    type(None): "",
    msgspec.UnsetType: "",
}


@dataclass(frozen=True)
class Field:
    """A field, as people write it."""

    name: str
    type: object
    default: str
    said: str


def tables(root: type, written: Callable[[str], str] = str) -> str:
    """A section for the type and each type that is inside it."""
    return "\n".join(_table(one, written) for one in _inside(root))


def fields_of(kind: type, written: Callable[[str], str] = str) -> list[Field]:
    """The fields of a Struct or a dataclass; `written` turns a dataclass's names into those of
    flags.
    """
    hints, said = typing.get_type_hints(kind, include_extras=True), _said(kind)
    if issubclass(kind, msgspec.Struct):
        return [
            Field(one.encode_name, hints[one.name], _default(one), said.get(one.name, ""))
            for one in msgspec.structs.fields(kind)
        ]
    assert dataclasses.is_dataclass(kind)
    return [
        Field(written(one.name), hints[one.name], _default(one), said.get(one.name, ""))
        for one in dataclasses.fields(kind)
    ]


def _inside(root: type) -> list[type]:
    """The type, then those of its fields, each once, in their order."""
    found, todo = [], [root]
    while todo:
        kind = todo.pop(0)
        if kind not in found:
            found.append(kind)
            todo += [inner for field in fields_of(kind) for inner in _structs(field.type)]
    return found


def _structs(hint: object) -> Iterator[type]:
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        yield hint
    for inner in typing.get_args(hint):
        yield from _structs(inner)


def _table(kind: type, written: Callable[[str], str]) -> str:
    title = kind.__name__.strip("_").removesuffix("Section")
    rows = "".join(
        f"| `{field.name}` | {words(field.type)} | {field.default} | {field.said} |\n"
        for field in fields_of(kind, written)
    )
    about = inspect.cleandoc(kind.__doc__ or "").split("\n\n")[0].replace("\n", " ")
    if about.startswith(f"{kind.__name__}("):
        about = ""
    return f"### {title}\n\n{about}\n\n| field | type | default | |\n|---|---|---|---|\n{rows}"


def words(hint: object) -> str:  # noqa: PLR0911 - one for each kind of type
    """A type, as people name it."""
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if hint in _WORDS:
        return _WORDS[hint]
    if origin is typing.Annotated:
        return _described(inner[1:]) or words(inner[0])
    if origin is typing.Literal:
        return ", ".join(f"`{value}`" if value else "nothing" for value in inner)
    if origin in (typing.Union, types.UnionType):
        return " or ".join(word for word in map(words, inner) if word)
    if origin is dict:
        return f"map to {words(inner[1])}"
    if origin in (list, tuple, frozenset):
        return f"list of {words(inner[0])}"
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        title = hint.__name__.strip("_").removesuffix("Section")
        return f"[{title}](#{title.lower()})"
    return getattr(hint, "__name__", str(hint)).lower()


def _described(notes: tuple[object, ...]) -> str:
    """What people call a text that has a pattern."""
    return next((one.description or "" for one in notes if isinstance(one, msgspec.Meta)), "")


def _default(field: dataclasses.Field[object] | msgspec.structs.FieldInfo) -> str:
    if isinstance(field, msgspec.structs.FieldInfo) and field.required:
        return "required"
    if field.default in (
        dataclasses.MISSING,
        msgspec.NODEFAULT,
        msgspec.UNSET,
        None,
        "",
        (),
        [],
        {},
    ):
        return ""
    if isinstance(field.default, bool):
        return f"`{str(field.default).lower()}`"
    return f"`{field.default}`"


def _said(kind: type) -> dict[str, str]:
    """What stands below each field in its class, and in those it stands on."""
    said: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        if base.__module__.startswith("bayplan."):
            said |= _said_in(base)
    return said


def _said_in(kind: type) -> dict[str, str]:
    body = ast.parse(textwrap.dedent(inspect.getsource(kind))).body[0]
    assert isinstance(body, ast.ClassDef)
    found = {}
    for field, text in zip(body.body, body.body[1:], strict=False):
        match field, text:
            case (
                ast.AnnAssign(target=ast.Name(id=name)),
                ast.Expr(value=ast.Constant(value=str() as words)),
            ):
                found[name] = " ".join(words.split()).replace("|", "\\|")
    return found
