"""The rules that say whether a pod may leave its node, in Cluster Autoscaler's order.

Each rule looks at one pod and says what becomes of it, or nothing; the first that says something
decides. The order matters: `safe-to-evict: "true"` comes before bare pods, local storage and
budgets, and after a controller that is missing or has too few replicas; a pod of kube-system that
has kept its node long enough may go whatever else it has. A pod of which nobody says anything is
moved.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from enum import Enum

from bayplan.autoscaler.options import ScaleDownOptions
from bayplan.autoscaler.scaledown.drain.budgets import RemainingBudgets
from bayplan.autoscaler.scaledown.drain.controllers import Controllers
from bayplan.autoscaler.scaledown.drain.pods import (
    ON_COMPLETION,
    SAFE_TO_EVICT,
    has_local_storage,
    is_daemon,
    is_long_terminating,
    is_mirror,
)
from bayplan.autoscaler.scaledown.reasons import BlockingReason
from bayplan.kube.meta import OwnerReference
from bayplan.kube.pods import Pod
from bayplan.kube.times import read_time
from bayplan.kube.workloads import ReplicaSet, ReplicationController

SYSTEM_NAMESPACE = "kube-system"
REPLICATED_KINDS = frozenset({"ReplicationController", "Job", "ReplicaSet", "StatefulSet"})


class Outcome(Enum):
    """What becomes of a pod when its node goes."""

    MOVE = "move"
    DAEMONSET = "daemonset"
    """It goes with the node, and needs no other place."""
    SKIP = "skip"
    """It does not count."""
    WAIT = "wait"
    """The node stays until it has ended by itself."""
    BLOCK = "block"
    """The node stays."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """An outcome, and why if it is to stay."""

    outcome: Outcome
    reason: BlockingReason | None = None


@dataclass(frozen=True, slots=True)
class Scene:
    """What rules look at beside the pod."""

    now: datetime
    options: ScaleDownOptions
    budgets: RemainingBudgets
    controllers: Controllers


Rule = Callable[[Pod, Scene], Verdict | None]
MOVE, DAEMONSET = Verdict(Outcome.MOVE), Verdict(Outcome.DAEMONSET)
SKIP, WAIT = Verdict(Outcome.SKIP), Verdict(Outcome.WAIT)


def verdict(pod: Pod, scene: Scene) -> Verdict:
    """What becomes of a pod if its node goes."""
    for rule in RULES:
        said = rule(pod, scene)
        if said is not None:
            return said
    return MOVE


def _block(reason: BlockingReason) -> Verdict:
    return Verdict(Outcome.BLOCK, reason)


def _mirror(pod: Pod, _scene: Scene) -> Verdict | None:
    return SKIP if is_mirror(pod) else None


def _long_terminating(pod: Pod, scene: Scene) -> Verdict | None:
    return SKIP if pod.is_terminating and is_long_terminating(pod, scene.now) else None


def _replica_count(pod: Pod, scene: Scene) -> Verdict | None:
    """Its controller must be there, and want enough pods; of kinds that can be looked up."""
    owner = pod.metadata.controller
    if owner is None or not scene.options.skip_nodes_with_custom_controller_pods:
        return None
    if not _can_be_looked_up(owner, daemon=is_daemon(pod)):
        return None
    found = scene.controllers.find(owner.kind, f"{pod.namespace}/{owner.name}")
    if found is None:
        return _block(BlockingReason.CONTROLLER_NOT_FOUND)
    if isinstance(found, ReplicaSet | ReplicationController):
        replicas = found.spec.replicas
        if replicas is not None and replicas < scene.options.min_replica_count:
            return _block(BlockingReason.MIN_REPLICAS_REACHED)
    return None


def _can_be_looked_up(owner: OwnerReference, *, daemon: bool) -> bool:
    """Whether a controller of this kind and group is one of those that are looked up.

    Only of DaemonSets and StatefulSets the group is asked; the others are found by their name.
    """
    if owner.api_version.count("/") > 1:
        return False
    in_apps = owner.api_version.startswith("apps/")
    if owner.kind == "ReplicationController":
        return True
    if daemon:
        return in_apps and owner.kind == "DaemonSet"
    return owner.kind in {"Job", "ReplicaSet"} or (owner.kind == "StatefulSet" and in_apps)


def _daemon_set(pod: Pod, _scene: Scene) -> Verdict | None:
    return DAEMONSET if is_daemon(pod) else None


def _safe_to_evict(pod: Pod, _scene: Scene) -> Verdict | None:
    return MOVE if pod.metadata.annotations.get(SAFE_TO_EVICT) == "true" else None


def _terminal(pod: Pod, _scene: Scene) -> Verdict | None:
    return MOVE if pod.is_terminal else None


def _on_completion(pod: Pod, _scene: Scene) -> Verdict | None:
    return WAIT if pod.metadata.annotations.get(SAFE_TO_EVICT) == ON_COMPLETION else None


def _replicated(pod: Pod, scene: Scene) -> Verdict | None:
    owner = pod.metadata.controller
    known_only = scene.options.skip_nodes_with_custom_controller_pods
    if owner is not None and (not known_only or owner.kind in REPLICATED_KINDS):
        return None
    return _block(BlockingReason.NOT_REPLICATED)


def _system(pod: Pod, scene: Scene) -> Verdict | None:
    if not scene.options.skip_nodes_with_system_pods or pod.namespace != SYSTEM_NAMESPACE:
        return None
    if scene.budgets.protects(pod):
        return None
    created = read_time(pod.metadata.creation_timestamp)
    patience = scene.options.blocking_system_pod_distruption_timeout
    if created is not None and (scene.now - created).total_seconds() > patience:
        return MOVE
    return _block(BlockingReason.UNMOVABLE_KUBE_SYSTEM_POD)


def _not_safe_to_evict(pod: Pod, _scene: Scene) -> Verdict | None:
    if pod.metadata.annotations.get(SAFE_TO_EVICT) == "false":
        return _block(BlockingReason.NOT_SAFE_TO_EVICT_ANNOTATION)
    return None


def _local_storage(pod: Pod, scene: Scene) -> Verdict | None:
    if scene.options.skip_nodes_with_local_storage and has_local_storage(pod):
        return _block(BlockingReason.LOCAL_STORAGE_REQUESTED)
    return None


def _budget(pod: Pod, scene: Scene) -> Verdict | None:
    return None if scene.budgets.allows(pod) else _block(BlockingReason.NOT_ENOUGH_PDB)


RULES: tuple[Rule, ...] = (
    _mirror,
    _long_terminating,
    _replica_count,
    _daemon_set,
    _safe_to_evict,
    _terminal,
    _on_completion,
    _replicated,
    _system,
    _not_safe_to_evict,
    _local_storage,
    _budget,
)
