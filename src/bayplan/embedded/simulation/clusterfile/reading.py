"""Reading a cluster file: YAML, then its shape, then its sense; each error names line and field."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import yaml

from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.simulation.clusterfile import building, schema
from bayplan.embedded.simulation.clusterfile.places import ClusterFileError, Places, Problem
from bayplan.embedded.simulation.clusterfile.spec import ClusterSpec, WorkloadSpec
from bayplan.kube.codec.objects import JsonValue
from bayplan.kube.codec.places import locate, reason
from bayplan.kube.loading.yaml_documents import yaml_values
from bayplan.kube.loading.yaml_values import YamlError, build

MAX_BYTES = 16 << 20
_UNKNOWN = re.compile(r"unknown field `([^`]*)`")


def read_cluster(path: Path) -> ClusterSpec:
    """The cluster that a file describes; ClusterFileError if it cannot be used."""
    return parse_cluster(_read(path), str(path), path.parent)


def parse_cluster(text: bytes, source: str, folder: Path) -> ClusterSpec:
    """The cluster that a text describes; other files are looked for in the folder."""
    value = _yaml(text, source)
    places = Places(text)
    try:
        file = _shaped({} if value is None else value)
        return _spec(file, source, folder, places)
    except Problem as problem:
        line = places.line(problem.field)
        raise ClusterFileError(source, line, problem.field, problem.problem) from None


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as stream:
            text = stream.read(MAX_BYTES + 1)
    except OSError as error:
        raise ClusterFileError(str(path), 0, "", error.strerror or str(error)) from None
    if len(text) > MAX_BYTES:
        raise ClusterFileError(str(path), 0, "", f"larger than {MAX_BYTES} bytes")
    return text


def _yaml(text: bytes, source: str) -> JsonValue:
    try:
        text.decode()
        return build(yaml.parse(text, Loader=yaml.CSafeLoader))
    except YamlError as error:
        raise ClusterFileError(source, error.line, "", str(error)) from None
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 0
        raise ClusterFileError(source, line, "", f"not YAML: {error.problem}") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ClusterFileError(source, 0, "", f"not YAML: {error}"[:200]) from None


def _shaped(value: JsonValue) -> schema.ClusterFile:
    try:
        return msgspec.convert(value, schema.ClusterFile)
    except msgspec.ValidationError as error:
        message = str(error)
        path, _ = locate(value, message)
        unknown = _UNKNOWN.search(message)
        if unknown:
            path = f"{path}.{unknown[1]}".removeprefix(".")
            raise Problem(path, "there is no such field") from None
        raise Problem(path, reason(message)) from None


def _spec(file: schema.ClusterFile, source: str, folder: Path, places: Places) -> ClusterSpec:
    drivers = building.drivers(file)
    workloads = tuple(
        _workload(one, f"workloads[{index}]", folder) for index, one in enumerate(file.workloads)
    )
    return ClusterSpec(
        source=source,
        seed=file.seed,
        drivers=drivers,
        classes=building.classes(file, drivers),
        groups=building.groups(file, drivers),
        faults=building.faults(file, drivers),
        workloads=workloads,
        lines={one.place: places.line(one.place) for one in workloads},
    )


def _workload(one: schema.WorkloadFile, path: str, folder: Path) -> WorkloadSpec:
    if bool(one.file) == (one.manifest is not None):
        raise Problem(path, "needs either file or manifest")
    if one.manifest is None:
        objects, place = _objects_in(folder / one.file, f"{path}.file"), f"{path}.file"
    else:
        objects = [one.manifest] if isinstance(one.manifest, dict) else list(one.manifest)
        place = f"{path}.manifest"
    for obj in objects:
        _check_object(obj, place)
    at = building.duration(one.at, f"{path}.at")
    if one.arrivals is None:
        return WorkloadSpec(place, tuple(objects), at)
    over = building.duration(one.arrivals.over, f"{path}.arrivals.over")
    random = one.arrivals.spread == "random"
    return WorkloadSpec(place, tuple(objects), at, one.arrivals.count, over, random)


def _objects_in(path: Path, place: str) -> list[JsonObject]:
    try:
        return [_listed(one, path, place) for one in yaml_values(_read(path))]
    except ClusterFileError as error:
        raise Problem(place, str(error)) from None
    except (YamlError, yaml.YAMLError, UnicodeDecodeError) as error:
        raise Problem(place, f"{path}: not YAML: {error}"[:300]) from None


def _listed(value: JsonValue, path: Path, place: str) -> JsonObject:
    if not isinstance(value, dict):
        raise Problem(place, f"{path}: a document is no object")
    return value


def _check_object(obj: object, place: str) -> None:
    meta = obj.get("metadata") if isinstance(obj, dict) else None
    if not isinstance(obj, dict) or not isinstance(meta, dict):
        raise Problem(place, "is no object with metadata")
    for field in ("apiVersion", "kind"):
        if not isinstance(obj.get(field), str):
            raise Problem(place, f"has no {field}")
    if not isinstance(meta.get("name"), str):
        raise Problem(place, "has no metadata.name")
