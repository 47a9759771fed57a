"""A step with its action: the target, the patch, the command and the risks."""

from __future__ import annotations

from dataclasses import replace

import msgspec

from bayplan.base.values import JsonObject
from bayplan.fit.explanation.actions import commands
from bayplan.fit.explanation.actions.owners import written_in
from bayplan.fit.explanation.actions.patches import merge_patch, plain, strategic_patch
from bayplan.fit.explanation.actions.risks import RISKS, ROLLED_OUT
from bayplan.fit.fixes import FixKind, Risk, Step, Target
from bayplan.fit.snapshot import Snapshot
from bayplan.kube.codec import find_kind
from bayplan.kube.meta import KubeObject
from bayplan.kube.nodes import Node
from bayplan.kube.pods import Pod
from bayplan.kube.storage import BIND_COMPLETED, PersistentVolumeClaim

_WITHOUT_COMMAND = {
    FixKind.ADD_NODE,
    FixKind.ADD_BIGGER_NODE,
    FixKind.INSTALL_DRIVER,
    FixKind.BIND_CLAIM,
}
"""Steps that no kubectl command makes."""


def acted(snapshot: Snapshot, pod: Pod, step: Step) -> Step:
    """A step, about to be taken for a pod in a snapshot, with the action that makes it."""
    risks = RISKS.get(step.kind, ())
    if plain(step.pod.spec) != plain(pod.spec):
        return _of_waiting_pod(snapshot, pod, replace(step, risks=risks))
    if step.deletes and not step.puts:
        return _deleting(replace(step, risks=risks))
    return _putting(snapshot, replace(step, risks=risks))


def _of_waiting_pod(snapshot: Snapshot, pod: Pod, step: Step) -> Step:
    """A change of the pod's spec, where it is written."""
    written = written_in(snapshot, pod)
    patch = written.patch(strategic_patch(plain(pod.spec), plain(step.pod.spec)))
    if written.kind == "Job":
        patch = commands.as_new_job(patch)
    target = Target(written.kind, pod.namespace, written.name)
    command = commands.change_of_spec(target, pod, patch)
    rolls = (Risk.RESTARTS,) if written.kind in ROLLED_OUT else ()
    return replace(step, target=target, patch=patch, command=command, risks=(*step.risks, *rolls))


def _deleting(step: Step) -> Step:
    targets = [_target(kind.__name__, key) for kind, key in step.deletes]
    return replace(step, target=targets[0], command=commands.deletion(targets))


def _putting(snapshot: Snapshot, step: Step) -> Step:
    puts = tuple(_by_hand(step.kind, obj) for obj in step.puts)
    main = max(puts, key=lambda obj: _is_changed(snapshot, obj))
    before = snapshot.get(type(main), main.key)
    is_new = before is None or step.kind is FixKind.CREATE_CLAIM
    target = _target(type(main).__name__, main.key)
    patch = _manifest(main) if is_new or before is None else _difference(before, main)
    command = "" if step.kind in _WITHOUT_COMMAND else _command(snapshot, step, target, patch)
    return replace(step, target=target, patch=patch, command=command)


def _difference(before: KubeObject, after: KubeObject) -> JsonObject:
    return merge_patch(plain(before), plain(after))


def _by_hand(kind: FixKind, obj: KubeObject) -> KubeObject:
    """An object as a person makes or changes it: who binds a claim is not that person."""
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
            return commands.creation([patch], instead_of=None if claim is None else target)
        case FixKind.SET_CLASS:
            return commands.made_anew(target, "merge", patch)
        case _:
            every = [obj for obj in step.puts if snapshot.get(type(obj), obj.key) is None]
            new = [_manifest(obj) for obj in every]
            return commands.creation(new) if new else commands.merge(target, patch)


def _command_for_node(snapshot: Snapshot, step: Step, target: Target, patch: JsonObject) -> str:
    if step.kind is FixKind.UNCORDON:
        return commands.uncordon(target)
    if step.kind is FixKind.LABEL_NODE:
        return commands.labelling([obj.name for obj in step.puts], patch)
    return commands.without_taints(target, _taints_gone(snapshot, step))


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
    """An object as it is to be made; only a node brings its status with it."""
    kind = find_kind(type(obj).__name__)
    head: JsonObject = {"apiVersion": kind.api_version, "kind": kind.name} if kind else {}
    said = {k: v for k, v in plain(obj).items() if k != "status" or isinstance(obj, Node)}
    return {**head, **said}


def _target(kind: str, key: str) -> Target:
    namespace, _, name = key.rpartition("/")
    return Target(kind, namespace, name)
