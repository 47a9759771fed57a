"""Objects with holes: what is the same for everybody is written out, the rest names a value.

    {"replicas": Value("scheduler.replicas"), "nodeSelector": When("scheduler.nodeSelector")}

`fill` puts values in and gives plain objects; the chart's writer turns the same holes into Helm's
words instead. So there is one source of all manifests, and no template that could differ from it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TypeAlias, cast

from bayplan.deploy.values import Values, find

NAMESPACE = "namespace"
VERSION = "version"
"""Two that are no fields of the values: Helm knows them by itself."""
SPREAD = "..."
"""The key of a field whose entries stand among the others."""


@dataclass(frozen=True, slots=True)
class Value:
    """A field of the values, whatever it holds."""

    path: str


@dataclass(frozen=True, slots=True)
class Text:
    """A string with fields in braces."""

    text: str


@dataclass(frozen=True, slots=True)
class When:
    """There only where a field is neither empty nor false; with `!`, only where it is."""

    path: str
    then: Node = None

    @property
    def node(self) -> Node:
        """What is there; without anything else, the field itself."""
        return Value(self.path) if self.then is None else self.then


@dataclass(frozen=True, slots=True)
class Each:
    """One item of a list for each of a field's, with `{}` in its text for the item."""

    path: str
    text: str = "{}"


@dataclass(frozen=True, slots=True)
class Remark:
    """An item with a comment above it."""

    text: str
    node: Node


@dataclass(frozen=True, slots=True)
class File:
    """The text of a file that the chart carries beside its templates."""

    name: str
    text: str


Node: TypeAlias = (
    "dict[str, Node] | list[Node] | str | int | float | bool | Value | Text | When | Each | Remark"
    " | File | None"
)
FIELD = re.compile(r"\{([\w.]+)\}")


@dataclass(frozen=True, slots=True)
class Filling:
    """What goes into the holes."""

    values: Values
    namespace: str
    version: str

    def find(self, path: str) -> object:
        """What a hole asks for."""
        own = {NAMESPACE: self.namespace, VERSION: self.version}
        return own[path] if path in own else find(self.values, path)

    def holds(self, path: str) -> bool:
        """Whether something is there that hangs on a field."""
        if path.startswith("!"):
            return not self.find(path[1:])
        return bool(self.find(path))


def fill_all(nodes: list[Node], by: Filling) -> list[Node]:
    """Those of them that are there, without holes."""
    return [one for item in nodes for one in _items(item, by)]


def fill(node: Node, by: Filling) -> Node:  # noqa: PLR0911 - one for each kind of node
    """The node without holes; comments stay."""
    match node:
        case dict():
            there = {key: one for key, one in node.items() if _is_there(one, by)}
            made = {key: fill(one, by) for key, one in there.items()}
            more = made.pop(SPREAD, {})
            return {**made, **more} if isinstance(more, dict) else made
        case list():
            return fill_all(node, by)
        case Value(path):
            return cast("Node", by.find(path))
        case Text(text):
            return FIELD.sub(lambda found: str(by.find(found[1])), text)
        case When():
            return fill(node.node, by)
        case Remark(text, inner):
            return Remark(text, fill(inner, by))
        case File(_, text):
            return text
        case _:
            return node


def bare(node: Node) -> Node:
    """What is filled, without its comments: an object as the API takes it."""
    match node:
        case dict():
            return {key: bare(one) for key, one in node.items()}
        case list():
            return [bare(one) for one in node]
        case Remark(_, inner):
            return bare(inner)
        case _:
            return node


def _is_there(node: Node, by: Filling) -> bool:
    return not isinstance(node, When) or by.holds(node.path)


def _items(item: Node, by: Filling) -> list[Node]:
    if isinstance(item, Each):
        held = cast("list[object]", by.find(item.path))
        return [item.text.replace("{}", str(one)) for one in held]
    if isinstance(item, When):
        if not by.holds(item.path):
            return []
        return _items(item.node, by)
    return [fill(item, by)]
