"""Whether a node may be drained: rules about its pods, what budgets allow, who controls a pod.

Each rule looks at one pod and says what becomes of it, or nothing; the first that says something
decides. The order is Cluster Autoscaler's, and it matters: `safe-to-evict: "true"` comes before
bare pods, local storage and budgets, and after a controller that is missing or has too few
replicas; a pod of kube-system that has kept its node long enough may go whatever else it has. A pod
that no rule is about is moved. Pods of so low a priority that no node is kept for them are not seen
at all.

A budget is for the pods of its namespace that its selector selects; an empty selector is for all of
them. A pod may go while every budget for it allows at least one; a node with more pods than that is
only risky, and what it spends beyond its budget is owed by the nodes after it.

ReplicaSets, ReplicationControllers and StatefulSets are in the snapshot. Jobs and DaemonSets are no
part of what fits, so they are handed in, as the informers' own copies or from a dump.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import Enum

from bayplan.autoscaler.options import ScaleDownOptions
from bayplan.autoscaler.scaledown.reasons import BlockingReason
from bayplan.fit.events import Event
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
"""Seconds that a pod gets to end if it does not say."""
OVERDUE = timedelta(seconds=30)
"""How long after its grace a pod that is still there counts as gone."""


def is_daemon(pod: Pod) -> bool:
    """Whether a pod goes with its node: it is of a DaemonSet, or says that it is to count so."""
    owner = pod.metadata.controller
    if owner is not None and owner.kind == "DaemonSet":
        return True
    return pod.metadata.annotations.get(DAEMONSET_POD) == "true"


def is_mirror(pod: Pod) -> bool:
    """Whether a pod only shows one that the node runs by itself."""
    return MIRROR in pod.metadata.annotations


def is_long_terminating(pod: Pod, now: datetime) -> bool:
    """Whether a pod should have been gone for a while."""
    deleted = read_time(pod.metadata.deletion_timestamp)
    if deleted is None:
        return False
    return (now - deleted - OVERDUE).total_seconds() > grace_of(pod)


def grace_of(pod: Pod) -> int:
    """How many seconds a pod gets to end."""
    grace = pod.spec.termination_grace_period_seconds
    return DEFAULT_GRACE if grace is None else grace


def is_evicted_daemon(pod: Pod, by_default: bool) -> bool:
    """Whether a daemon is evicted before its node goes; what the pod says comes first."""
    said = pod.metadata.annotations.get(ENABLE_DS_EVICTION)
    return by_default if said is None else said == "true"


def has_local_storage(pod: Pod) -> bool:
    """Whether a pod has data on its node that it does not say it can lose."""
    safe = pod.metadata.annotations.get(SAFE_LOCAL_VOLUMES, "").split(",")
    return any(_is_local(volume) and volume.name not in safe for volume in pod.spec.volumes)


def _is_local(volume: Volume) -> bool:
    if volume.host_path is not None:
        return True
    return volume.empty_dir is not None and volume.empty_dir.medium != "Memory"


def is_expendable(pod: Pod, cutoff: int) -> bool:
    """Whether nothing is kept for a pod."""
    return pod.spec.priority is not None and pod.spec.priority < cutoff


class Expendables:
    """The keys of all expendable pods."""

    def __init__(self, cutoff: int) -> None:
        self._cutoff = cutoff
        self.keys: set[str] = set()

    def hear(self, event: Event) -> None:
        """An object came, changed or went."""
        if event.kind is not Pod:
            return
        if isinstance(event.after, Pod) and is_expendable(event.after, self._cutoff):
            self.keys.add(event.key)
        else:
            self.keys.discard(event.key)


@dataclass(frozen=True, slots=True)
class Controllers:
    """All controllers that can be looked up."""

    snapshot: Snapshot
    jobs: Mapping[str, Job] = field(default_factory=dict)
    daemon_sets: Mapping[str, DaemonSet] = field(default_factory=dict)

    def find(self, kind: str, key: str) -> KubeObject | None:
        """The controller of this kind and key, if it is there."""
        if kind == "Job":
            return self.jobs.get(key)
        if kind == "DaemonSet":
            return self.daemon_sets.get(key)
        return self.snapshot.cluster.workloads.controllers.get((kind, key))


Selected = tuple[str, Selector]
"""A budget's key, and the selector of its pods."""


class BudgetIndex:
    """Budgets by the pods that they are for."""

    def __init__(self, budgets: Iterable[PodDisruptionBudget]) -> None:
        self.allowed: dict[str, int] = {}
        self._by_namespace: dict[str, SelectorIndex[Selected]] = {}
        for budget in budgets:
            self.allowed[budget.key] = budget.status.disruptions_allowed
            selector = compile_selector(budget.spec.selector)
            there = self._by_namespace.setdefault(budget.namespace, SelectorIndex())
            there.add(required_label([selector]), (budget.key, selector))

    def of(self, pod: Pod) -> list[str]:
        """The keys of a pod's budgets."""
        there = self._by_namespace.get(pod.metadata.namespace)
        if there is None:
            return []
        labels = pod.metadata.labels
        return [key for key, selector in there.for_labels(labels) if selector.matches(labels)]


class BudgetIndexCache:
    """The index of a snapshot's budgets, made anew only when they change."""

    def __init__(self) -> None:
        self._version = -1
        self._index = BudgetIndex(())

    def remaining(self, snapshot: Snapshot) -> RemainingBudgets:
        """What the budgets allow as they now stand."""
        if self._version != snapshot.budgets.version:
            self._index = BudgetIndex(snapshot.budgets.by_key.values())
            self._version = snapshot.budgets.version
        return RemainingBudgets(self._index)


class RemainingBudgets:
    """What is left of budgets as pods are taken away."""

    def __init__(self, index: BudgetIndex) -> None:
        self._index = index
        self._spent: Counter[str] = Counter()

    def protects(self, pod: Pod) -> bool:
        """Whether any budget is for the pod."""
        return bool(self._index.of(pod))

    def allows(self, pod: Pod) -> bool:
        """Whether every budget of the pod has one left."""
        return all(self._left(key) >= 1 for key in self._index.of(pod))

    def spend(self, pods: Iterable[Pod]) -> bool:
        """These go; says whether all of them could go at once."""
        asked = Counter(key for pod in pods for key in self._index.of(pod))
        together = all(self._left(key) >= count for key, count in asked.items())
        self._spent.update(asked)
        return together

    def _left(self, key: str) -> int:
        return self._index.allowed[key] - self._spent[key]


SYSTEM_NAMESPACE = "kube-system"
REPLICATED_KINDS = frozenset({"ReplicationController", "Job", "ReplicaSet", "StatefulSet"})


class DrainOutcome(Enum):
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
class DrainVerdict:
    """An outcome, and why if it is to stay."""

    outcome: DrainOutcome
    reason: BlockingReason | None = None


@dataclass(frozen=True, slots=True)
class DrainContext:
    """What rules look at beside the pod."""

    now: datetime
    options: ScaleDownOptions
    budgets: RemainingBudgets
    controllers: Controllers


Rule = Callable[[Pod, DrainContext], DrainVerdict | None]
MOVE, DAEMONSET = DrainVerdict(DrainOutcome.MOVE), DrainVerdict(DrainOutcome.DAEMONSET)
SKIP, WAIT = DrainVerdict(DrainOutcome.SKIP), DrainVerdict(DrainOutcome.WAIT)


def drain_verdict(pod: Pod, scene: DrainContext) -> DrainVerdict:
    """What becomes of a pod if its node goes."""
    for rule in RULES:
        said = rule(pod, scene)
        if said is not None:
            return said
    return MOVE


def _block(reason: BlockingReason) -> DrainVerdict:
    return DrainVerdict(DrainOutcome.BLOCK, reason)


def _mirror(pod: Pod, _scene: DrainContext) -> DrainVerdict | None:
    return SKIP if is_mirror(pod) else None


def _long_terminating(pod: Pod, scene: DrainContext) -> DrainVerdict | None:
    return SKIP if pod.is_terminating and is_long_terminating(pod, scene.now) else None


def _replica_count(pod: Pod, scene: DrainContext) -> DrainVerdict | None:
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


def _daemon_set(pod: Pod, _scene: DrainContext) -> DrainVerdict | None:
    return DAEMONSET if is_daemon(pod) else None


def _safe_to_evict(pod: Pod, _scene: DrainContext) -> DrainVerdict | None:
    return MOVE if pod.metadata.annotations.get(SAFE_TO_EVICT) == "true" else None


def _terminal(pod: Pod, _scene: DrainContext) -> DrainVerdict | None:
    return MOVE if pod.is_terminal else None


def _on_completion(pod: Pod, _scene: DrainContext) -> DrainVerdict | None:
    return WAIT if pod.metadata.annotations.get(SAFE_TO_EVICT) == ON_COMPLETION else None


def _replicated(pod: Pod, scene: DrainContext) -> DrainVerdict | None:
    owner = pod.metadata.controller
    known_only = scene.options.skip_nodes_with_custom_controller_pods
    if owner is not None and (not known_only or owner.kind in REPLICATED_KINDS):
        return None
    return _block(BlockingReason.NOT_REPLICATED)


def _system(pod: Pod, scene: DrainContext) -> DrainVerdict | None:
    if not scene.options.skip_nodes_with_system_pods or pod.namespace != SYSTEM_NAMESPACE:
        return None
    if scene.budgets.protects(pod):
        return None
    created = read_time(pod.metadata.creation_timestamp)
    patience = scene.options.blocking_system_pod_distruption_timeout
    if created is not None and (scene.now - created).total_seconds() > patience:
        return MOVE
    return _block(BlockingReason.UNMOVABLE_KUBE_SYSTEM_POD)


def _not_safe_to_evict(pod: Pod, _scene: DrainContext) -> DrainVerdict | None:
    if pod.metadata.annotations.get(SAFE_TO_EVICT) == "false":
        return _block(BlockingReason.NOT_SAFE_TO_EVICT_ANNOTATION)
    return None


def _local_storage(pod: Pod, scene: DrainContext) -> DrainVerdict | None:
    if scene.options.skip_nodes_with_local_storage and has_local_storage(pod):
        return _block(BlockingReason.LOCAL_STORAGE_REQUESTED)
    return None


def _budget(pod: Pod, scene: DrainContext) -> DrainVerdict | None:
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
