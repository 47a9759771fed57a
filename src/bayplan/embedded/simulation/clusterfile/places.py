"""Errors that name the line and the field: the document's places, found by the fields' paths."""

from __future__ import annotations

import re

import yaml

from bayplan.kube.codec.problems import printable

_STEP = re.compile(r"\.?([^.\[\]]+)|\[(\d+)\]")


class ClusterFileError(ValueError):
    """A cluster file that cannot be used: where, which field, and why."""

    def __init__(self, source: str, line: int, field: str, problem: str) -> None:
        place = f"{source}:{line}" if line else source
        super().__init__(printable(": ".join(part for part in (place, field, problem) if part)))
        self.line = line
        self.field = field


class Problem(Exception):  # noqa: N818 - it becomes an error once its line is known
    """Something wrong with a field."""

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(problem)
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


def _child(node: yaml.Node | None, name: str, index: str) -> tuple[yaml.Node, int] | None:
    if isinstance(node, yaml.SequenceNode) and index and int(index) < len(node.value):
        item = node.value[int(index)]
        return item, item.start_mark.line + 1
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if key.value == name:
                return value, key.start_mark.line + 1
    return None
