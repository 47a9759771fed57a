"""Pods of a manifest that is not in the cluster: a Pod, or a workload with a pod template.

Other objects of the file, such as claims and classes, are added too. A Deployment with three
replicas gives three pods.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import msgspec

from bayplan.base.errors import InputError
from bayplan.base.values import JsonObject, JsonValue
from bayplan.kube.codec import DEFAULT_NAMESPACE, ObjectError, decode_object
from bayplan.kube.manifests import LoadError, load, plain_documents
from bayplan.kube.meta import KubeObject
from bayplan.kube.pods import Pod
from bayplan.kube.validation import check

MOST_PODS = 10_000


class _Meta(msgspec.Struct, rename="camel"):
    name: str = ""
    namespace: str = DEFAULT_NAMESPACE
    labels: dict[str, str] = {}


class _Template(msgspec.Struct, rename="camel"):
    spec: dict[str, Any]
    metadata: _Meta = msgspec.field(default_factory=_Meta)


class _ClaimTemplate(msgspec.Struct, rename="camel"):
    metadata: _Meta
    spec: dict[str, Any]


class _WorkloadSpec(msgspec.Struct, rename="camel"):
    template: _Template
    replicas: int | None = None
    parallelism: int | None = None
    volume_claim_templates: list[_ClaimTemplate] = []


class _Workload(msgspec.Struct, rename="camel"):
    api_version: str
    kind: str
    metadata: _Meta
    spec: _WorkloadSpec


@dataclass(slots=True)
class PodManifest:
    """The pods of a manifest, and its other objects."""

    pods: list[Pod] = field(default_factory=list)
    others: list[KubeObject] = field(default_factory=list)


def read_manifest(path: str) -> PodManifest:
    """Read a file; InputError if it has no pod or is invalid."""
    try:
        documents = plain_documents(path)
    except LoadError as error:
        raise InputError(f"--pod: {error}") from None
    found = PodManifest()
    for place, document in documents:
        try:
            _take(found, document)
        except (ObjectError, msgspec.ValidationError, ValueError) as error:
            raise InputError(f"--pod: {place}: {error}") from None
    if not found.pods:
        raise InputError(f"--pod: {path[:200]}: contains no pod")
    return found


def _take(found: PodManifest, document: JsonObject) -> None:
    spec = document.get("spec")
    if isinstance(spec, dict) and "template" in spec:
        workload = msgspec.convert(document, _Workload)
        for pod in _pods_of(workload):
            found.pods.append(pod)
            found.others.extend(_claims_of(workload, pod.name))
        return
    loaded = load(msgspec.json.encode(document))
    for problem in loaded.problems:
        raise problem
    for obj in loaded.objects:
        found.pods.append(obj) if isinstance(obj, Pod) else found.others.append(obj)


def _pods_of(workload: _Workload) -> Iterator[Pod]:
    spec, meta = workload.spec, workload.metadata
    replicas = spec.replicas if spec.replicas is not None else spec.parallelism
    count = 1 if replicas is None else replicas
    if not 0 <= count <= MOST_PODS:
        raise ValueError(
            f"{workload.kind} {meta.name}: {count} pods, must be from 0 to {MOST_PODS:,}"
        )
    owner: JsonObject = {
        "apiVersion": workload.api_version,
        "kind": workload.kind,
        "name": meta.name,
        "uid": meta.name,
        "controller": True,
    }
    for number in range(count):
        yield _pod(
            {
                "name": f"{meta.name}-{number}",
                "namespace": meta.namespace,
                "uid": f"{meta.name}-{number}",
                "labels": dict(spec.template.metadata.labels),
                "ownerReferences": [owner],
            },
            _with_claims(workload, f"{meta.name}-{number}"),
        )


def _pod(metadata: JsonObject, spec: JsonObject) -> Pod:
    pod = decode_object({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
    check(pod)
    if not isinstance(pod, Pod):
        raise TypeError(f"not a Pod: {type(pod).__name__}")
    return pod


def _with_claims(workload: _Workload, pod: str) -> JsonObject:
    """Return the pod's spec, with a volume for each of its volumeClaimTemplates."""
    spec = workload.spec.template.spec
    made: list[JsonValue] = [
        {"name": name, "persistentVolumeClaim": {"claimName": f"{name}-{pod}"}}
        for name in (one.metadata.name for one in workload.spec.volume_claim_templates)
    ]
    volumes = spec.get("volumes") or []
    if not isinstance(volumes, list):
        return spec
    return {**spec, "volumes": [*volumes, *made]} if made else spec


def _claims_of(workload: _Workload, pod: str) -> Iterator[KubeObject]:
    for one in workload.spec.volume_claim_templates:
        claim = decode_object(
            {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "metadata": {
                    "name": f"{one.metadata.name}-{pod}",
                    "namespace": workload.metadata.namespace,
                },
                "spec": one.spec,
            }
        )
        check(claim)
        yield claim
