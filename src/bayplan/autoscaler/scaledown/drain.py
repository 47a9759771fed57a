"""Drain rules: whether a node may be drained, by its pods, their budgets and controllers.

Each rule returns a verdict for a pod, or None; the first verdict decides. The order is Cluster
Autoscaler's, and it matters: `safe-to-evict: "true"` comes before bare pods, local storage and
budgets, and after a controller that is missing or has too few replicas; a kube-system pod that has
blocked its node long enough may be moved whatever else it has. A pod without a verdict is moved.
Expendable pods are ignored.

A budget applies to the pods of its namespace that its selector matches; an empty selector matches
all. A pod may be moved while each of its budgets allows at least one disruption; a node with more
pods than that is risky, and what it uses beyond its budget is missing for the nodes after it.

ReplicaSets, ReplicationControllers and StatefulSets are in the snapshot. Jobs and DaemonSets are
not, so they are passed in from informers' caches or from a dump.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import Enum

from bayplan.autoscaler.options import ScaleDownOptions
from bayplan.autoscaler.scaledown.reasons import BlockingReason
from bayplan.fit.hints import ClusterEvent
from bayplan.fit.indexes import SelectorIndex, required_label
from bayplan.fit.snapshot import Snapshot
from bayplan.kube.meta import KubeObject, OwnerReference
from bayplan.kube.pods import Pod
from bayplan.kube.selectors import Selector, compile_selector
from bayplan.kube.times import read_time
from bayplan.kube.volumes import Volume
from bayplan.kube.workloads import (
    DaemonSet,
    Job,
    PodDisruptionBudget,
    ReplicaSet,
    ReplicationController,
)

PREFIX = "cluster-autoscaler.kubernetes.io/"
SAFE_TO_EVICT = f"{PREFIX}safe-to-evict"
SAFE_LOCAL_VOLUMES = f"{PREFIX}safe-to-evict-local-volumes"
DAEMONSET_POD = f"{PREFIX}daemonset-pod"
ENABLE_DS_EVICTION = f"{PREFIX}enable-ds-eviction"
ON_COMPLETION = "on-completion"
MIRROR = "kubernetes.io/config.mirror"

DEFAULT_GRACE = 30
"""The default termination grace period, in seconds."""
TERMINATION_SLACK = timedelta(seconds=30)
"""How long after its grace period a terminating pod counts as gone."""


def is_daemon(pod: Pod) -> bool:
    """Whether a pod is of a DaemonSet, or has the annotation to count as one."""
    owner = pod.metadata.controller
    if owner is not None and owner.kind == "DaemonSet":
        return True
    return pod.metadata.annotations.get(DAEMONSET_POD) == "true"


def is_mirror(pod: Pod) -> bool:
    """Whether a pod is the mirror of a static pod."""
    return MIRROR in pod.metadata.annotations


def is_long_terminating(pod: Pod, now: datetime) -> bool:
    """Whether a pod is terminating for longer than its grace period."""
    deleted = read_time(pod.metadata.deletion_timestamp)
    if deleted is None:
        return False
    return (now - deleted - TERMINATION_SLACK).total_seconds() > grace_of(pod)


def grace_of(pod: Pod) -> int:
    """Return a pod's termination grace period, in seconds."""
    grace = pod.spec.termination_grace_period_seconds
    return DEFAULT_GRACE if grace is None else grace


def is_evicted_daemon(pod: Pod, by_default: bool) -> bool:
    """Whether a DaemonSet pod is evicted before its node is removed; its annotation wins."""
    annotation = pod.metadata.annotations.get(ENABLE_DS_EVICTION)
    return by_default if annotation is None else annotation == "true"


def has_local_storage(pod: Pod) -> bool:
    """Whether a pod has local storage that is not annotated as safe to evict."""
    safe = pod.metadata.annotations.get(SAFE_LOCAL_VOLUMES, "").split(",")
    return any(_is_local(volume) and volume.name not in safe for volume in pod.spec.volumes)


def _is_local(volume: Volume) -> bool:
    if volume.host_path is not None:
        return True
    return volume.empty_dir is not None and volume.empty_dir.medium != "Memory"


def is_expendable(pod: Pod, cutoff: int) -> bool:
    """Whether a pod's priority is below the cutoff."""
    return pod.spec.priority is not None and pod.spec.priority < cutoff


class Expendables:
    """The keys of all expendable pods."""

    def __init__(self, cutoff: int) -> None:
        self._cutoff = cutoff
        self.keys: set[str] = set()

    def on_event(self, event: ClusterEvent) -> None:
        """Update the keys with an added, updated or deleted object."""
        if event.kind is not Pod:
            return
        if isinstance(event.after, Pod) and is_expendable(event.after, self._cutoff):
            self.keys.add(event.key)
        else:
            self.keys.discard(event.key)


@dataclass(frozen=True, slots=True)
class Controllers:
    """Looks up controllers of pods."""

    snapshot: Snapshot
    jobs: Mapping[str, Job] = field(default_factory=dict)
    daemon_sets: Mapping[str, DaemonSet] = field(default_factory=dict)

    def find(self, kind: str, key: str) -> KubeObject | None:
        """Return the controller of this kind and key, if it exists."""
        if kind == "Job":
            return self.jobs.get(key)
        if kind == "DaemonSet":
            return self.daemon_sets.get(key)
        return self.snapshot.cluster.workloads.controllers.get((kind, key))


Selected = tuple[str, Selector]
"""A budget's key, and the selector of its pods."""


class BudgetIndex:
    """PodDisruptionBudgets, indexed by the pods that they apply to."""

    def __init__(self, budgets: Iterable[PodDisruptionBudget]) -> None:
        self.allowed: dict[str, int] = {}
        self._by_namespace: dict[str, SelectorIndex[Selected]] = {}
        for budget in budgets:
            self.allowed[budget.key] = budget.status.disruptions_allowed
            selector = compile_selector(budget.spec.selector)
            index = self._by_namespace.setdefault(budget.namespace, SelectorIndex())
            index.add(required_label([selector]), (budget.key, selector))

    def of(self, pod: Pod) -> list[str]:
        """Return the keys of a pod's budgets."""
        index = self._by_namespace.get(pod.metadata.namespace)
        if index is None:
            return []
        labels = pod.metadata.labels
        return [key for key, selector in index.for_labels(labels) if selector.matches(labels)]


class BudgetIndexCache:
    """The index of a snapshot's budgets, built again only when they change."""

    def __init__(self) -> None:
        self._version = -1
        self._index = BudgetIndex(())

    def remaining(self, snapshot: Snapshot) -> RemainingBudgets:
        """Return what the budgets currently allow."""
        if self._version != snapshot.budgets.version:
            self._index = BudgetIndex(snapshot.budgets.by_key.values())
            self._version = snapshot.budgets.version
        return RemainingBudgets(self._index)


class RemainingBudgets:
    """The disruptions that budgets still allow as pods are moved."""

    def __init__(self, index: BudgetIndex) -> None:
        self._index = index
        self._spent: Counter[str] = Counter()

    def protects(self, pod: Pod) -> bool:
        """Whether any budget applies to the pod."""
        return bool(self._index.of(pod))

    def allows(self, pod: Pod) -> bool:
        """Whether every budget of the pod allows one more disruption."""
        return all(self._left(key) >= 1 for key in self._index.of(pod))

    def spend(self, pods: Iterable[Pod]) -> bool:
        """Count these pods as disrupted; return whether the budgets allow all at once."""
        asked = Counter(key for pod in pods for key in self._index.of(pod))
        together = all(self._left(key) >= count for key, count in asked.items())
        self._spent.update(asked)
        return together

    def _left(self, key: str) -> int:
        return self._index.allowed[key] - self._spent[key]


SYSTEM_NAMESPACE = "kube-system"
REPLICATED_KINDS = frozenset({"ReplicationController", "Job", "ReplicaSet", "StatefulSet"})


class DrainOutcome(Enum):
    """The outcome for a pod when its node is removed."""

    MOVE = "move"
    DAEMONSET = "daemonset"
    """It is removed with the node."""
    SKIP = "skip"
    """It is ignored."""
    WAIT = "wait"
    """The node is kept until the pod has finished."""
    BLOCK = "block"
    """The node is unremovable."""


@dataclass(frozen=True, slots=True)
class DrainVerdict:
    """The outcome for a pod, and the reason if it blocks."""

    outcome: DrainOutcome
    reason: BlockingReason | None = None


@dataclass(frozen=True, slots=True)
class DrainContext:
    """What drain rules read besides the pod."""

    now: datetime
    options: ScaleDownOptions
    budgets: RemainingBudgets
    controllers: Controllers


Rule = Callable[[Pod, DrainContext], DrainVerdict | None]
MOVE, DAEMONSET = DrainVerdict(DrainOutcome.MOVE), DrainVerdict(DrainOutcome.DAEMONSET)
SKIP, WAIT = DrainVerdict(DrainOutcome.SKIP), DrainVerdict(DrainOutcome.WAIT)


def drain_verdict(pod: Pod, drain_context: DrainContext) -> DrainVerdict:
    """Return the verdict for a pod if its node is removed."""
    for rule in RULES:
        verdict = rule(pod, drain_context)
        if verdict is not None:
            return verdict
    return MOVE


def _block(reason: BlockingReason) -> DrainVerdict:
    return DrainVerdict(DrainOutcome.BLOCK, reason)


def _mirror(pod: Pod, _drain_context: DrainContext) -> DrainVerdict | None:
    return SKIP if is_mirror(pod) else None


def _long_terminating(pod: Pod, drain_context: DrainContext) -> DrainVerdict | None:
    return SKIP if pod.is_terminating and is_long_terminating(pod, drain_context.now) else None


def _replica_count(pod: Pod, drain_context: DrainContext) -> DrainVerdict | None:
    """Block if the pod's controller does not exist or has too few replicas."""
    owner = pod.metadata.controller
    if owner is None or not drain_context.options.skip_nodes_with_custom_controller_pods:
        return None
    if not _can_be_looked_up(owner, daemon=is_daemon(pod)):
        return None
    found = drain_context.controllers.find(owner.kind, f"{pod.namespace}/{owner.name}")
    if found is None:
        return _block(BlockingReason.CONTROLLER_NOT_FOUND)
    if isinstance(found, ReplicaSet | ReplicationController):
        replicas = found.spec.replicas
        if replicas is not None and replicas < drain_context.options.min_replica_count:
            return _block(BlockingReason.MIN_REPLICAS_REACHED)
    return None


def _can_be_looked_up(owner: OwnerReference, *, daemon: bool) -> bool:
    """Whether a controller of this kind and API group is looked up.

    Only for DaemonSets and StatefulSets the group is checked, as in Cluster Autoscaler.
    """
    if owner.api_version.count("/") > 1:
        return False
    in_apps = owner.api_version.startswith("apps/")
    if owner.kind == "ReplicationController":
        return True
    if daemon:
        return in_apps and owner.kind == "DaemonSet"
    return owner.kind in {"Job", "ReplicaSet"} or (owner.kind == "StatefulSet" and in_apps)


def _daemon_set(pod: Pod, _drain_context: DrainContext) -> DrainVerdict | None:
    return DAEMONSET if is_daemon(pod) else None


def _safe_to_evict(pod: Pod, _drain_context: DrainContext) -> DrainVerdict | None:
    return MOVE if pod.metadata.annotations.get(SAFE_TO_EVICT) == "true" else None


def _terminal(pod: Pod, _drain_context: DrainContext) -> DrainVerdict | None:
    return MOVE if pod.is_terminal else None


def _on_completion(pod: Pod, _drain_context: DrainContext) -> DrainVerdict | None:
    return WAIT if pod.metadata.annotations.get(SAFE_TO_EVICT) == ON_COMPLETION else None


def _replicated(pod: Pod, drain_context: DrainContext) -> DrainVerdict | None:
    owner = pod.metadata.controller
    known_only = drain_context.options.skip_nodes_with_custom_controller_pods
    if owner is not None and (not known_only or owner.kind in REPLICATED_KINDS):
        return None
    return _block(BlockingReason.NOT_REPLICATED)


def _system(pod: Pod, drain_context: DrainContext) -> DrainVerdict | None:
    if not drain_context.options.skip_nodes_with_system_pods or pod.namespace != SYSTEM_NAMESPACE:
        return None
    if drain_context.budgets.protects(pod):
        return None
    created = read_time(pod.metadata.creation_timestamp)
    timeout = drain_context.options.blocking_system_pod_distruption_timeout
    if created is not None and (drain_context.now - created).total_seconds() > timeout:
        return MOVE
    return _block(BlockingReason.UNMOVABLE_KUBE_SYSTEM_POD)


def _not_safe_to_evict(pod: Pod, _drain_context: DrainContext) -> DrainVerdict | None:
    if pod.metadata.annotations.get(SAFE_TO_EVICT) == "false":
        return _block(BlockingReason.NOT_SAFE_TO_EVICT_ANNOTATION)
    return None


def _local_storage(pod: Pod, drain_context: DrainContext) -> DrainVerdict | None:
    if drain_context.options.skip_nodes_with_local_storage and has_local_storage(pod):
        return _block(BlockingReason.LOCAL_STORAGE_REQUESTED)
    return None


def _budget(pod: Pod, drain_context: DrainContext) -> DrainVerdict | None:
    return None if drain_context.budgets.allows(pod) else _block(BlockingReason.NOT_ENOUGH_PDB)


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
