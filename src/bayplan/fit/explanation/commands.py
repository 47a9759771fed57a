"""The kubectl commands that make changes, ready for a shell."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence

import msgspec

from bayplan.base.values import JsonObject, JsonValue
from bayplan.fit.fixes import Target
from bayplan.kube.pods import Pod

_KEPT_UNTIL_DELETED = {"StatefulSet", "ReplicaSet", "ReplicationController"}
"""Kinds that do not replace a pending pod when their template changes."""
_PATCHED = {"Deployment", "DaemonSet", *_KEPT_UNTIL_DELETED}
_OF_JOB: JsonObject = {"controller-uid": None, "batch.kubernetes.io/controller-uid": None}


def change_spec(target: Target, pod: Pod, patch: JsonObject) -> str:
    """Change a pod's spec where it is written."""
    if target.kind in _PATCHED:
        patched = _patch(target, "strategic", patch)
        again = _KEPT_UNTIL_DELETED & {target.kind}
        return f"{patched} && {delete([_of(pod)])}" if again else patched
    if target.kind == "Pod" and _only_tolerates(patch):
        return _patch(target, "strategic", patch)
    if target.kind in ("Pod", "Job"):
        return recreate(target, "strategic", patch)
    return _kubectl(target.namespace, "edit", target.kind.lower(), target.name)


def as_new_job(patch: JsonObject) -> JsonObject:
    """Return the patch of a Job that is recreated: a Job's template is immutable, and its selector
    is generated again.
    """
    spec = _inner(patch, "spec")
    template: JsonObject = {**_inner(spec, "template"), "metadata": {"labels": _OF_JOB}}
    return {**patch, "spec": {**spec, "selector": None, "template": template}}


def delete(targets: Sequence[Target]) -> str:
    """Delete objects of one kind."""
    first = targets[0]
    names = [target.name for target in targets if target.namespace == first.namespace]
    others = [target for target in targets if target.namespace != first.namespace]
    command = _kubectl(first.namespace, "delete", first.kind.lower(), *names)
    return f"{command} && {delete(others)}" if others else command


def create(manifests: Sequence[JsonObject], instead_of: Target | None = None) -> str:
    """Create objects; one may have to be deleted first."""
    first = f"{delete([instead_of])} && " if instead_of is not None else ""
    items: list[JsonValue] = list(manifests)
    whole: JsonObject = {"apiVersion": "v1", "kind": "List", "items": items}
    text = _json(manifests[0] if len(manifests) == 1 else whole)
    return f"{first}kubectl apply -f - <<'EOF'\n{text}\nEOF"


def merge(target: Target, patch: JsonObject) -> str:
    """Merge a patch into an object, or into its status."""
    return _patch(target, "merge", patch, *(("--subresource=status",) if "status" in patch else ()))


def uncordon(target: Target) -> str:
    """Uncordon a node."""
    return _kubectl("", "uncordon", target.name)


def label_nodes(nodes: Sequence[str], patch: JsonObject) -> str:
    """Set labels of nodes, and remove those that are null."""
    labels = _inner(_inner(patch, "metadata"), "labels")
    described = [f"{k}-" if value is None else f"{k}={value}" for k, value in labels.items()]
    return _kubectl("", "label", "node", *nodes, *described, "--overwrite")


def remove_taints(target: Target, gone: Sequence[str]) -> str:
    """Remove taints from a node."""
    return _kubectl("", "taint", "node", target.name, *gone)


def move(target: Target, pod: Pod, patch: JsonObject) -> str:
    """Move a pod: delete it for its controller to recreate, or recreate it on another node."""
    if pod.metadata.controller is not None:
        return delete([target])
    return recreate(target, "merge", patch)


def recreate(target: Target, kind: str, patch: JsonObject) -> str:
    """Delete an object and create it again, changed."""
    shown = _kubectl(target.namespace, "get", target.kind.lower(), target.name, "-o", "json")
    patched = f"kubectl patch --local -f - --type={kind} -p {shlex.quote(_json(patch))} -o json"
    return f"{shown} | {patched} | kubectl replace --force -f -"


def _patch(target: Target, kind: str, patch: JsonObject, *flags: str) -> str:
    args = (target.kind.lower(), target.name, *flags, f"--type={kind}", "-p", _json(patch))
    return _kubectl(target.namespace, "patch", *args)


def _kubectl(namespace: str, *args: str) -> str:
    where = ("-n", namespace) if namespace else ()
    return shlex.join(("kubectl", *where, *args))


def _only_tolerates(patch: JsonObject) -> bool:
    """Whether a pod may be changed like this while it waits."""
    return _inner(patch, "spec").keys() == {"tolerations"}


def _inner(values: Mapping[str, JsonValue], key: str) -> JsonObject:
    found = values.get(key)
    return found if isinstance(found, dict) else {}


def _of(pod: Pod) -> Target:
    return Target("Pod", pod.namespace, pod.name)


def _json(values: JsonObject) -> str:
    return msgspec.json.encode(values).decode()
