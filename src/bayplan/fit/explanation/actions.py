"""A step with its action: which object is changed, the patch, the command that makes it, its risks.

What a step changes is known from the objects before and after it, so the patch is their difference
and no proposal has to write one. A change of a pod is a change of what made it: the template of its
controller, or the pod itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

import msgspec

from bayplan.base.values import JsonObject
from bayplan.fit.explanation import commands
from bayplan.fit.explanation.patches import merge_patch, plain, strategic_patch
from bayplan.fit.fixes import FixKind, Risk, Step, Target
from bayplan.fit.snapshot import Snapshot
from bayplan.kube.codec import find_kind
from bayplan.kube.meta import KubeObject, OwnerReference
from bayplan.kube.nodes import Node
from bayplan.kube.pods import Pod
from bayplan.kube.storage import BIND_COMPLETED, PersistentVolumeClaim

_RELAXES = (Risk.RELAXES_A_RULE,)
RISKS: Mapping[FixKind, tuple[Risk, ...]] = {
    FixKind.UNCORDON: (Risk.OPENS_A_NODE,),
    FixKind.CLEAR_TAINT: (Risk.NEEDS_MANUAL_STEPS,),
    FixKind.TOLERATION: _RELAXES,
    FixKind.LABEL_NODE: (Risk.OPENS_A_NODE,),
    FixKind.CHANGE_SELECTOR: _RELAXES,
    FixKind.SMALLER_REQUEST: (Risk.RUNS_WITH_LESS,),
    FixKind.DROP_HOST_PORT: _RELAXES,
    FixKind.MOVE_POD: (Risk.EVICTS,),
    FixKind.STOP_POD: (Risk.EVICTS,),
    FixKind.ADD_NODE: (Risk.COSTS, Risk.NEEDS_MANUAL_STEPS),
    FixKind.ADD_BIGGER_NODE: (Risk.COSTS, Risk.NEEDS_MANUAL_STEPS),
    FixKind.INSTALL_DRIVER: (Risk.NEEDS_MANUAL_STEPS,),
    FixKind.RAISE_LIMIT: (Risk.OVERLOADS,),
    FixKind.BIND_CLAIM: (Risk.NEEDS_MANUAL_STEPS,),
    FixKind.ADD_VOLUME: (Risk.COSTS, Risk.NEEDS_MANUAL_STEPS),
    FixKind.CREATE_VOLUME: (Risk.NEEDS_MANUAL_STEPS,),
    FixKind.HONOR_TAINTS: (Risk.UNBALANCES,),
    FixKind.HONOR_AFFINITY: (Risk.UNBALANCES,),
    FixKind.RELAX_SPREAD: (Risk.RELAXES_A_RULE, Risk.UNBALANCES),
    FixKind.DROP_AFFINITY: _RELAXES,
}
ROLLED_OUT = frozenset({"Deployment", "StatefulSet", "DaemonSet"})
"""Kinds that replace their running pods when their template changes."""


# -- where a pod's spec is written -----------------------------------------------------------------


_TEMPLATE = ("spec", "template", "spec")
_HASH = "pod-template-hash"
TEMPLATES: Mapping[str, tuple[str, ...]] = {
    "Deployment": _TEMPLATE,
    "StatefulSet": _TEMPLATE,
    "DaemonSet": _TEMPLATE,
    "ReplicaSet": _TEMPLATE,
    "ReplicationController": _TEMPLATE,
    "Job": _TEMPLATE,
    "Pod": ("spec",),
}
"""Where each kind has the pod's spec."""


class SpecSource(NamedTuple):
    """The object in which a pod's spec is written."""

    kind: str
    name: str

    def patch(self, spec: JsonObject) -> JsonObject:
        """A patch of the spec as a patch of this object."""
        patch = spec
        for field in reversed(TEMPLATES.get(self.kind, _TEMPLATE)):
            patch = {field: patch}
        return patch


def find_spec_source(snapshot: Snapshot, pod: Pod) -> SpecSource:
    """Return the object that has a pod's spec: its controller, that one's controller, or the
    pod.
    """
    owner = pod.metadata.controller
    if owner is None or owner.kind == "Node":
        return SpecSource("Pod", pod.name)
    if owner.kind == "ReplicaSet":
        return _behind(snapshot, pod, owner)
    return SpecSource(owner.kind, owner.name)


def _behind(snapshot: Snapshot, pod: Pod, owner: OwnerReference) -> SpecSource:
    """Return the Deployment of a ReplicaSet; where that is unknown, by the name of its pods."""
    controllers = snapshot.cluster.workloads.controllers
    replicas = controllers.get(("ReplicaSet", f"{pod.namespace}/{owner.name}"))
    above = replicas.metadata.controller if replicas is not None else None
    if above is not None:
        return SpecSource(above.kind, above.name)
    suffix = f"-{pod.metadata.labels.get(_HASH, '')}"
    if replicas is None and suffix != "-" and owner.name.endswith(suffix):
        return SpecSource("Deployment", owner.name.removesuffix(suffix))
    return SpecSource(owner.kind, owner.name)


# -- actions ---------------------------------------------------------------------------------------


_WITHOUT_COMMAND = {
    FixKind.ADD_NODE,
    FixKind.ADD_BIGGER_NODE,
    FixKind.INSTALL_DRIVER,
    FixKind.BIND_CLAIM,
}
"""Steps that no kubectl command makes."""


def with_action(snapshot: Snapshot, pod: Pod, step: Step) -> Step:
    """Return a step with its action, before it is applied to a snapshot."""
    risks = RISKS.get(step.kind, ())
    if plain(step.pod.spec) != plain(pod.spec):
        return _of_waiting_pod(snapshot, pod, replace(step, risks=risks))
    if step.deletes and not step.puts:
        return _deleting(replace(step, risks=risks))
    return _putting(snapshot, replace(step, risks=risks))


def _of_waiting_pod(snapshot: Snapshot, pod: Pod, step: Step) -> Step:
    """Return the step with a change of the object that has the pod's spec."""
    written = find_spec_source(snapshot, pod)
    patch = written.patch(strategic_patch(plain(pod.spec), plain(step.pod.spec)))
    if written.kind == "Job":
        patch = commands.as_new_job(patch)
    target = Target(written.kind, pod.namespace, written.name)
    command = commands.change_spec(target, pod, patch)
    rolls = (Risk.RESTARTS,) if written.kind in ROLLED_OUT else ()
    return replace(step, target=target, patch=patch, command=command, risks=(*step.risks, *rolls))


def _deleting(step: Step) -> Step:
    targets = [_target(kind.__name__, key) for kind, key in step.deletes]
    return replace(step, target=targets[0], command=commands.delete(targets))


def _putting(snapshot: Snapshot, step: Step) -> Step:
    puts = tuple(_as_a_person_writes_it(step.kind, obj) for obj in step.puts)
    main = max(puts, key=lambda obj: _is_changed(snapshot, obj))
    before = snapshot.get(type(main), main.key)
    is_new = before is None or step.kind is FixKind.CREATE_CLAIM
    target = _target(type(main).__name__, main.key)
    patch = _manifest(main) if is_new or before is None else _difference(before, main)
    command = "" if step.kind in _WITHOUT_COMMAND else _command(snapshot, step, target, patch)
    return replace(step, target=target, patch=patch, command=command)


def _difference(before: KubeObject, after: KubeObject) -> JsonObject:
    return merge_patch(plain(before), plain(after))


def _as_a_person_writes_it(kind: FixKind, obj: KubeObject) -> KubeObject:
    """Return an object as a person writes it: without the binding that a controller adds."""
    if kind not in {FixKind.CREATE_CLAIM, FixKind.SET_CLASS}:
        return obj
    if not isinstance(obj, PersistentVolumeClaim):
        return obj
    noted = {k: v for k, v in obj.metadata.annotations.items() if k != BIND_COMPLETED}
    return msgspec.structs.replace(
        obj,
        metadata=msgspec.structs.replace(obj.metadata, annotations=noted),
        spec=msgspec.structs.replace(obj.spec, volume_name=""),
    )


def _command(snapshot: Snapshot, step: Step, target: Target, patch: JsonObject) -> str:
    match step.kind:
        case FixKind.UNCORDON | FixKind.LABEL_NODE | FixKind.CLEAR_TAINT:
            return _command_for_node(snapshot, step, target, patch)
        case FixKind.MOVE_POD:
            moved = next(obj for obj in step.puts if isinstance(obj, Pod))
            return commands.move(target, moved, patch)
        case FixKind.CREATE_CLAIM:
            claim = snapshot.get(PersistentVolumeClaim, f"{target.namespace}/{target.name}")
            return commands.create([patch], instead_of=None if claim is None else target)
        case FixKind.SET_CLASS:
            return commands.recreate(target, "merge", patch)
        case _:
            every = [obj for obj in step.puts if snapshot.get(type(obj), obj.key) is None]
            new = [_manifest(obj) for obj in every]
            return commands.create(new) if new else commands.merge(target, patch)


def _command_for_node(snapshot: Snapshot, step: Step, target: Target, patch: JsonObject) -> str:
    if step.kind is FixKind.UNCORDON:
        return commands.uncordon(target)
    if step.kind is FixKind.LABEL_NODE:
        return commands.label_nodes([obj.name for obj in step.puts], patch)
    return commands.remove_taints(target, _taints_gone(snapshot, step))


def _taints_gone(snapshot: Snapshot, step: Step) -> list[str]:
    node = step.puts[0]
    before = snapshot.get(Node, node.name)
    if before is None or not isinstance(node, Node):
        return []
    return [f"{t.key}:{t.effect}-" for t in before.spec.taints if t not in node.spec.taints]


def _is_changed(snapshot: Snapshot, obj: KubeObject) -> bool:
    before = snapshot.get(type(obj), obj.key)
    return before is None or plain(before) != plain(obj)


def _manifest(obj: KubeObject) -> JsonObject:
    """Return the manifest of an object; only a node has its status."""
    kind = find_kind(type(obj).__name__)
    head: JsonObject = {"apiVersion": kind.api_version, "kind": kind.name} if kind else {}
    described = {k: v for k, v in plain(obj).items() if k != "status" or isinstance(obj, Node)}
    return {**head, **described}


def _target(kind: str, key: str) -> Target:
    namespace, _, name = key.rpartition("/")
    return Target(kind, namespace, name)
