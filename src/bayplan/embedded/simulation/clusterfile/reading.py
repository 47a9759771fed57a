"""Reading a cluster file: YAML, then its shape, then its sense; each error names line and field."""

from __future__ import annotations

from pathlib import Path

import yaml

from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.simulation.clusterfile import building, schema
from bayplan.embedded.simulation.clusterfile.spec import ClusterSpec, WorkloadSpec
from bayplan.kube.codec.objects import JsonValue
from bayplan.kube.configfiles import (
    ConfigFileError,
    Document,
    FieldProblem,
    parse,
    read_text,
)
from bayplan.kube.loading.yaml_documents import yaml_values
from bayplan.kube.loading.yaml_values import YamlError


def read_cluster(path: Path) -> ClusterSpec:
    """The cluster that a file describes; ConfigFileError if it cannot be used."""
    return parse_cluster(read_text(path), str(path), path.parent)


def parse_cluster(text: bytes, source: str, folder: Path) -> ClusterSpec:
    """The cluster that a text describes; other files are looked for in the folder."""
    document = parse(text, source, schema.ClusterFile)
    try:
        return _spec(document, folder)
    except FieldProblem as problem:
        raise document.error(problem) from None


def _spec(document: Document[schema.ClusterFile], folder: Path) -> ClusterSpec:
    file = document.value
    drivers = building.drivers(file)
    workloads = tuple(
        _workload(one, f"workloads[{index}]", folder) for index, one in enumerate(file.workloads)
    )
    return ClusterSpec(
        source=document.source,
        seed=file.seed,
        drivers=drivers,
        classes=building.classes(file, drivers),
        groups=building.groups(file, drivers),
        faults=building.faults(file, drivers),
        workloads=workloads,
        lines={one.place: document.places.line(one.place) for one in workloads},
    )


def _workload(one: schema.WorkloadFile, path: str, folder: Path) -> WorkloadSpec:
    if bool(one.file) == (one.manifest is not None):
        raise FieldProblem(path, "needs either file or manifest")
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
        return [_listed(one, path, place) for one in yaml_values(read_text(path))]
    except ConfigFileError as error:
        raise FieldProblem(place, str(error)) from None
    except (YamlError, yaml.YAMLError, UnicodeDecodeError) as error:
        raise FieldProblem(place, f"{path}: not YAML: {error}"[:300]) from None


def _listed(value: JsonValue, path: Path, place: str) -> JsonObject:
    if not isinstance(value, dict):
        raise FieldProblem(place, f"{path}: a document is no object")
    return value


def _check_object(obj: object, place: str) -> None:
    meta = obj.get("metadata") if isinstance(obj, dict) else None
    if not isinstance(obj, dict) or not isinstance(meta, dict):
        raise FieldProblem(place, "is no object with metadata")
    for field in ("apiVersion", "kind"):
        if not isinstance(obj.get(field), str):
            raise FieldProblem(place, f"has no {field}")
    if not isinstance(meta.get("name"), str):
        raise FieldProblem(place, "has no metadata.name")
