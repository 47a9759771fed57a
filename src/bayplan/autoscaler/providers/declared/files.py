"""Groups declared in a file: `nodeGroups`, a list of declarations, each with the group's name.

A file is read strictly: the first thing that makes no sense is an error with its line, since
whoever wrote the file is there to correct it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec

from bayplan.autoscaler.providers.declared.declaration import Declaration, declare
from bayplan.base.configfiles import FieldProblem, parse, read_text
from bayplan.kube.configvalues import Section, once

_Name = Annotated[str, msgspec.Meta(min_length=1, max_length=1000)]


class _Named(msgspec.Struct):
    name: _Name


class _File(Section):
    node_groups: list[dict[str, object]]


def read_groups(path: Path) -> tuple[Declaration, ...]:
    """The groups that a file declares; ConfigFileError if it cannot be used."""
    return parse_groups(read_text(path), str(path))


def parse_groups(text: bytes, source: str) -> tuple[Declaration, ...]:
    """The groups that a text declares; ConfigFileError if it cannot be used."""
    document = parse(text, source, _File)
    found: dict[str, Declaration] = {}
    try:
        for index, entry in enumerate(document.value.node_groups):
            path = f"nodeGroups[{index}]"
            one = _declared(entry, path)
            once(found, one.group, f"{path}.{'id' if entry.get('id') else 'name'}")
            found[one.group] = one
    except FieldProblem as problem:
        raise document.error(problem) from None
    return tuple(found.values())


def _declared(entry: dict[str, object], path: str) -> Declaration:
    try:
        name = msgspec.convert(entry, _Named).name
    except msgspec.ValidationError:
        raise FieldProblem(f"{path}.name", "a group needs a name of its own") from None
    rest = {key: value for key, value in entry.items() if key != "name"}
    made = declare(name, rest, path)
    for problem in made.problems:
        raise problem
    return made
