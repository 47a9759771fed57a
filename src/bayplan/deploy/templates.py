"""Object templates: fixed parts are written out, the others refer to a value.

    {"replicas": ValueRef("scheduler.replicas"), "affinity": Conditional("scheduler.affinity")}

`render` replaces the references with values and returns plain objects; `yaml_writer` writes the
same templates in Helm's template language. So all manifests have one source and cannot differ.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TypeAlias, cast

from bayplan.deploy.values import Values, find_value

NAMESPACE = "namespace"
VERSION = "version"
"""The two references that are no fields of the values: Helm has them built in."""
SPREAD = "..."
"""The key of a mapping whose entries are merged into the mapping that contains it."""


@dataclass(frozen=True, slots=True)
class ValueRef:
    """A reference to a field of the values, of any type."""

    path: str


@dataclass(frozen=True, slots=True)
class TextTemplate:
    """A string with references to fields in braces."""

    text: str


@dataclass(frozen=True, slots=True)
class Conditional:
    """A part that is rendered only if a field is neither empty nor false; with `!`, if it is."""

    path: str
    then: TemplateNode = None

    @property
    def node(self) -> TemplateNode:
        """The conditional part; by default the field itself."""
        return ValueRef(self.path) if self.then is None else self.then


@dataclass(frozen=True, slots=True)
class ForEach:
    """A list item for each item of a field, with `{}` in its text for the item."""

    path: str
    text: str = "{}"


@dataclass(frozen=True, slots=True)
class Commented:
    """A list item with a comment above it."""

    text: str
    node: TemplateNode


@dataclass(frozen=True, slots=True)
class ChartFile:
    """The text of a file that the chart contains beside its templates."""

    name: str
    text: str


TemplateNode: TypeAlias = (
    "dict[str, TemplateNode] | list[TemplateNode] | str | int | float | bool | ValueRef"
    " | TextTemplate | Conditional | ForEach | Commented | ChartFile | None"
)
FIELD = re.compile(r"\{([\w.]+)\}")


@dataclass(frozen=True, slots=True)
class RenderContext:
    """The values, namespace and version to render templates with."""

    values: Values
    namespace: str
    version: str

    def find(self, path: str) -> object:
        """Return the value that a reference names."""
        own = {NAMESPACE: self.namespace, VERSION: self.version}
        return own[path] if path in own else find_value(self.values, path)

    def is_set(self, path: str) -> bool:
        """Return whether the condition of a `Conditional` is met."""
        if path.startswith("!"):
            return not self.find(path[1:])
        return bool(self.find(path))


def render_all(nodes: list[TemplateNode], context: RenderContext) -> list[TemplateNode]:
    """Render those of the nodes whose conditions are met."""
    return [one for item in nodes for one in _items(item, context)]


def render(node: TemplateNode, context: RenderContext) -> TemplateNode:  # noqa: PLR0911 - one for each kind of node
    """Replace all references of a node with values; comments are kept."""
    match node:
        case dict():
            included = {key: one for key, one in node.items() if _is_included(one, context)}
            made = {key: render(one, context) for key, one in included.items()}
            more = made.pop(SPREAD, {})
            return {**made, **more} if isinstance(more, dict) else made
        case list():
            return render_all(node, context)
        case ValueRef(path):
            return cast("TemplateNode", context.find(path))
        case TextTemplate(text):
            return FIELD.sub(lambda found: str(context.find(found[1])), text)
        case Conditional():
            return render(node.node, context)
        case Commented(text, inner):
            return Commented(text, render(inner, context))
        case ChartFile(_, text):
            return text
        case _:
            return node


def without_comments(node: TemplateNode) -> TemplateNode:
    """Return a rendered node without comments: an object as the API accepts it."""
    match node:
        case dict():
            return {key: without_comments(one) for key, one in node.items()}
        case list():
            return [without_comments(one) for one in node]
        case Commented(_, inner):
            return without_comments(inner)
        case _:
            return node


def _is_included(node: TemplateNode, context: RenderContext) -> bool:
    return not isinstance(node, Conditional) or context.is_set(node.path)


def _items(item: TemplateNode, context: RenderContext) -> list[TemplateNode]:
    if isinstance(item, ForEach):
        held = cast("list[object]", context.find(item.path))
        return [item.text.replace("{}", str(one)) for one in held]
    if isinstance(item, Conditional):
        if not context.is_set(item.path):
            return []
        return _items(item.node, context)
    return [render(item, context)]
