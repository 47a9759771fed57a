"""The section `workloads`: objects to create, inline or in files.

An object of a built-in kind must have only fields of that kind: what a server would drop silently,
or refuse hours later, is an error with its line.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import msgspec
import yaml

from bayplan.base.configfiles import ConfigFileError, FieldLines, FieldProblem, read_text
from bayplan.base.suggestions import suggestion
from bayplan.base.yaml_values import YamlError
from bayplan.embedded.apiserver.jsontypes import JsonObject, clone
from bayplan.embedded.apiserver.kinds.builtin import BUILTIN
from bayplan.embedded.apiserver.schema.typecheck import TypeCheck, TypeMismatch, check_object
from bayplan.embedded.apiserver.schema.types import ObjectType, find_type, root_type
from bayplan.kube.configvalues import Duration, Section, seconds
from bayplan.kube.manifests.documents import yaml_documents

_STEP = re.compile(r"[^.\[\]]+|\[\d+\]")
_GROUPS = {(kind.api_version, kind.kind): kind.group for kind in BUILTIN}


def check_manifest(obj: object, place: str) -> JsonObject:
    """Return the object; FieldProblem with its path under `place` if it is invalid."""
    meta = obj.get("metadata") if isinstance(obj, dict) else None
    if not isinstance(obj, dict) or not isinstance(meta, dict):
        raise FieldProblem(place, "is not an object with metadata")
    for field in ("apiVersion", "kind"):
        if not isinstance(obj.get(field), str):
            raise FieldProblem(place, f"has no {field}")
    if not isinstance(meta.get("name"), str):
        raise FieldProblem(place, "has no metadata.name")
    _check_fields(obj, place)
    return obj


def _check_fields(obj: JsonObject, place: str) -> None:
    """Check the fields of built-in kinds; other kinds are checked once CRDs exist."""
    group = _GROUPS.get((obj["apiVersion"], obj["kind"]))
    type_ = None if group is None else root_type(group, obj["kind"])
    if type_ is None:
        return
    report = TypeCheck([])
    try:
        check_object(clone(obj), type_, report)
    except TypeMismatch as problem:
        message = str(problem).removeprefix(f"{problem.field}: ")
        raise FieldProblem(_under(place, problem.field), message) from None
    except RecursionError:
        raise FieldProblem(place, "is nested too deeply") from None
    for path in report.unknown[:1]:
        known = fields_around(type_, path)
        name = path.rpartition(".")[2]
        raise FieldProblem(_under(place, path), f"unknown field{suggestion(name, known)}")


def fields_around(type_: ObjectType | None, path: str) -> list[str]:
    """Return the fields of the object that has the last field of a path."""
    steps = [one for one in _STEP.findall(path) if not one.startswith("[")]
    in_map = False
    for step in steps[:-1]:
        if in_map:
            in_map = False  # the key of a map entry, not a field
            continue
        field = type_.fields.get(step) if type_ is not None else None
        in_map = field is not None and field.is_map
        type_ = find_type(field.base) if field is not None else None
    return list(type_.fields) if type_ is not None else []


def _under(place: str, path: str) -> str:
    return f"{place}.{path}" if place else path


@dataclass(frozen=True, slots=True)
class WorkloadSpec:
    """Objects to create at a time, or many copies of them over a duration."""

    place: str
    """Path in the file, for errors."""
    objects: tuple[JsonObject, ...]
    at: float = 0.0
    count: int = 0
    """Number of copies; 0 for the objects themselves."""
    over: float = 0.0
    random: bool = True


class ArrivalsSection(Section):
    """Many copies of a manifest over a duration."""

    count: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)]
    """Number of copies."""
    over: Duration
    """Duration over which they are created."""
    spread: Literal["random", "even"] = "random"
    """At random times, or evenly."""


class WorkloadSection(Section):
    """Objects to create: from a file, or inline."""

    file: str = ""
    """A file with one or more objects; the path is relative to the cluster file."""
    manifest: dict[str, object] | list[dict[str, object]] | None = None
    """An object or a list of objects."""
    at: Duration = 0
    """Time of creation, counted from the start of the run."""
    arrivals: ArrivalsSection | None = None
    """Many copies, each with a number at the end of its name."""

    def workload(self, path: str, folder: Path) -> WorkloadSpec:
        """Return the objects and their times."""
        if bool(self.file) == (self.manifest is not None):
            raise FieldProblem(path, "needs either file or manifest")
        place = f"{path}.file" if self.file else f"{path}.manifest"
        objects = _in_file(folder / self.file, place) if self.file else self._written(place)
        at = seconds(self.at, f"{path}.at")
        if self.arrivals is None:
            return WorkloadSpec(place, tuple(objects), at)
        over = seconds(self.arrivals.over, f"{path}.arrivals.over")
        random = self.arrivals.spread == "random"
        return WorkloadSpec(place, tuple(objects), at, self.arrivals.count, over, random)

    def _written(self, place: str) -> list[JsonObject]:
        if isinstance(self.manifest, dict):
            check_manifest(self.manifest, place)
            return [self.manifest]
        for index, one in enumerate(self.manifest or ()):
            check_manifest(one, f"{place}[{index}]")
        return list(self.manifest or ())


def workloads(sections: list[WorkloadSection], folder: Path) -> tuple[WorkloadSpec, ...]:
    """Return all workloads; files are relative to the folder."""
    return tuple(one.workload(f"workloads[{index}]", folder) for index, one in enumerate(sections))


def _in_file(path: Path, place: str) -> list[JsonObject]:
    try:
        return [
            _checked(value, path, line, text)
            for line, text, value in yaml_documents(read_text(path))
        ]
    except ConfigFileError as error:
        raise FieldProblem(place, str(error)) from None
    except (YamlError, yaml.YAMLError, UnicodeDecodeError) as error:
        raise FieldProblem(place, f"{path}: not YAML: {error}"[:300]) from None


def _checked(value: object, path: Path, line: int, text: bytes) -> JsonObject:
    """Return the object of one document of a file, which starts after that line."""
    try:
        return check_manifest(value, "")
    except FieldProblem as problem:
        at = line + FieldLines(text).line(problem.field)
        raise ConfigFileError(str(path), at, problem.field, problem.problem) from None
