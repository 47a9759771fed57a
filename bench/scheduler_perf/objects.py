"""The objects that workloads make: nodes, pods, volumes and claims, from upstream's templates.

Without a template they are as upstream's harness makes them: nodes of four cpus, 32Gi and 110 pods,
pods that ask for 100m and 500Mi.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from bench.scheduler_perf.gotemplate import Template
from bench.scheduler_perf.workloads import Operation, WorkloadError

Object = dict[str, Any]
HOSTNAME = "kubernetes.io/hostname"
_SIZE = {"cpu": "4", "memory": "32Gi", "pods": "110"}
_ASKED = {"cpu": "100m", "memory": "500Mi"}
_NODE: Object = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {},
    "status": {
        "capacity": _SIZE,
        "allocatable": _SIZE,
        "conditions": [{"type": "Ready", "status": "True"}],
    },
}
_POD: Object = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"generateName": "pod-"},
    "spec": {
        "containers": [
            {
                "name": "pause",
                "image": "registry.k8s.io/pause:3.10",
                "ports": [{"containerPort": 80}],
                "resources": {"limits": _ASKED, "requests": _ASKED},
            }
        ]
    },
}


def from_template(path: Path, index: int, count: int, params: Mapping[str, Any]) -> Object:
    """One object of a template file."""
    text, template = _template(path)
    if template is not None:
        text = template.render({**params, "Index": index, "Count": count})
        return _parsed(text, path)
    return copy.deepcopy(_plain(path))


def node(operation: Operation, number: int, index: int, overall: int) -> Object:
    """A node of a createNodes step; `overall` counts all nodes made so far."""
    path = operation.path("nodeTemplatePath")
    made = (
        copy.deepcopy(_NODE)
        if path is None
        else from_template(path, index, operation.count(), operation.params())
    )
    meta = made.setdefault("metadata", {})
    prefix = meta.pop("generateName", f"node-{number}-")
    meta.setdefault("name", f"{prefix}{overall:05d}")
    labels = meta.setdefault("labels", {})
    labels[HOSTNAME] = meta["name"]
    labels.update(_labels(operation, overall))
    status = made["status"] = whole_status(made)
    strategy = operation.fields.get("nodeAllocatableStrategy") or {}
    status["allocatable"].update(strategy.get("nodeAllocatable") or {})
    return made


def whole_status(made: Object) -> Object:
    """The status of an object; what a node can give is its capacity unless it says otherwise."""
    status = made.get("status") or {}
    if made["kind"] != "Node":
        return status
    offered = {**(status.get("capacity") or {}), **(status.get("allocatable") or {})}
    return {**status, "allocatable": offered}


def csi_node(operation: Operation, node_name: str) -> Object | None:
    """The CSINode that a createNodes step wants beside a node."""
    strategy = operation.fields.get("nodeAllocatableStrategy")
    if not strategy:
        return None
    drivers = [
        {"name": driver, "nodeID": node_name, "allocatable": allocatable}
        for driver, allocatable in (strategy.get("csiNodeAllocatable") or {}).items()
    ]
    meta: Object = {"name": node_name}
    migrated = strategy.get("migratedPlugins")
    if migrated:
        plugins = ",".join(migrated)
        meta["annotations"] = {"storage.alpha.kubernetes.io/migrated-plugins": plugins}
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSINode",
        "metadata": meta,
        "spec": {"drivers": drivers},
    }


def pod(operation: Operation, default: Path | None, namespace: str, index: int) -> Object:
    """A pod of a createPods step."""
    path = operation.path("podTemplatePath") or default
    made = (
        copy.deepcopy(_POD)
        if path is None
        else from_template(path, index, operation.count(), operation.params())
    )
    made["metadata"]["namespace"] = namespace
    if "podSpec" in operation.fields:  # said by cases of our own
        made["metadata"]["labels"] = {"app": "bench"}
        made["spec"].update(operation.fields["podSpec"])
    if operation.path("persistentVolumeClaimTemplatePath") is not None:
        claim = {"persistentVolumeClaim": {"claimName": f"pvc-{index}"}}
        made["spec"]["volumes"] = [{"name": "vol", **claim}]
    return made


def pods_differ(operation: Operation, default: Path | None) -> bool:
    """Whether the pods of a createPods step are not all the same."""
    path = operation.path("podTemplatePath") or default
    claims = operation.path("persistentVolumeClaimTemplatePath")
    return claims is not None or (path is not None and _template(path)[1] is not None)


def volume_and_claim(operation: Operation, namespace: str, index: int) -> tuple[Object, Object]:
    """A volume and its claim, bound to each other, as a createPods step wants them."""
    of_volume = operation.path("persistentVolumeTemplatePath")
    of_claim = operation.path("persistentVolumeClaimTemplatePath")
    if of_volume is None or of_claim is None:
        raise WorkloadError("a claim without its volume, or the reverse")
    volume = from_template(of_volume, index, operation.count(), {})
    claim = from_template(of_claim, index, operation.count(), {})
    name = f"{namespace}-vol-{index}"
    volume.setdefault("metadata", {})["name"] = name
    claim.setdefault("metadata", {}).update(name=f"pvc-{index}", namespace=namespace)
    source = volume["spec"]
    if "csi" in source:
        source["csi"]["volumeHandle"] = name
    elif "awsElasticBlockStore" in source:
        source["awsElasticBlockStore"]["volumeID"] = f"vol-{index}"
    reference = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": namespace}
    source["claimRef"] = {**reference, "name": f"pvc-{index}"}
    claim["spec"]["volumeName"] = name
    volume["status"] = {"phase": "Bound"}
    claim["status"] = {"phase": "Bound"}
    return volume, claim


def updated(live: Object, wanted: Object) -> Object:
    """A live object as a template wants it; of a pod stays what servers and schedulers add."""
    labels = wanted.get("metadata", {}).get("labels") or {}
    host = {key: value for key, value in _labels_of(live).items() if key == HOSTNAME}
    made = {**live, "metadata": {**live["metadata"], "labels": {**host, **labels}}}
    if live["kind"] != "Pod":
        return {**made, "spec": wanted.get("spec") or {}}
    spec, change = dict(live["spec"]), wanted["spec"]
    spec.pop("schedulingGates", None)
    added = [one for one in change.get("tolerations") or () if one not in spec["tolerations"]]
    tolerations = [*spec["tolerations"], *added]
    containers = [
        {**old, **new} for old, new in zip(spec["containers"], change["containers"], strict=True)
    ]
    made["spec"] = {**spec, **change, "tolerations": tolerations, "containers": containers}
    return made


def _labels_of(obj: Object) -> dict[str, str]:
    return obj["metadata"].get("labels") or {}


def _labels(operation: Operation, index: int) -> dict[str, str]:
    strategy = operation.fields.get("labelNodePrepareStrategy")
    if strategy:
        values = strategy["labelValues"]
        return {strategy["labelKey"]: str(values[index % len(values)])}
    unique = operation.fields.get("uniqueNodeLabelStrategy")
    return {unique["labelKey"]: f"unique-{index}"} if unique else {}


@cache
def _template(path: Path) -> tuple[str, Template | None]:
    text = path.read_text()
    return text, Template(text) if "{{" in text else None


@cache
def _plain(path: Path) -> Object:
    return _parsed(_template(path)[0], path)


def _parsed(text: str, path: Path) -> Object:
    value = yaml.load(text, Loader=yaml.CSafeLoader)
    if not isinstance(value, dict):
        raise WorkloadError(f"{path}: is no object")
    return value
