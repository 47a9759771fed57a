"""The input of a loop's decisions: the cloud's state, the cluster's nodes, upcoming nodes.

A group's template and readiness criteria are cached. They are computed again when the readiness of
one of its nodes changes, its drivers report, the cloud's answer changes, a DaemonSet changes, or
half a minute has passed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Generic, TypeVar

from bayplan.autoscaler.cloudstate.backoff import NodeGroupBackoff
from bayplan.autoscaler.cloudstate.reader import CloudState, NodeGroupInfo
from bayplan.autoscaler.clusterstate.nodes import NodeStates
from bayplan.autoscaler.clusterstate.pending_pods import (
    PendingPods,
    UnschedulablePods,
    unschedulable_pods,
)
from bayplan.autoscaler.clusterstate.readiness import NodeReadiness, ReadinessCriteria
from bayplan.autoscaler.clusterstate.registry import (
    ClusterStateRegistry,
    UpcomingNodes,
    group_by_provider_id,
)
from bayplan.autoscaler.expected_drivers import DriverOutlier
from bayplan.autoscaler.options import AutoscalerOptions
from bayplan.autoscaler.templates import NodeGroupView, TemplateContext, TemplateNodeInfoProvider
from bayplan.fit import Snapshot
from bayplan.fit.hints import ClusterEvent
from bayplan.kube.gates import VOLUME_LIMIT_SCALING
from bayplan.kube.pods import Pod
from bayplan.kube.storage import CSIDriver, StorageClass
from bayplan.kube.workloads import DaemonSet


@dataclass(frozen=True, slots=True, eq=False)
class ClusterView:
    """A cluster and its cloud at one moment; decisions may fork the snapshot, and undo it."""

    snapshot: Snapshot
    now: datetime
    options: AutoscalerOptions = field(default_factory=AutoscalerOptions)
    groups: Mapping[str, NodeGroupView] = field(default_factory=dict)
    """By name."""
    group_of: Mapping[str, str] = field(default_factory=dict)
    """By node, the name of its group; nodes without a group are left out."""
    unschedulable_pods: tuple[Pod, ...] = ()
    """The pods that a scale-up would help."""
    upcoming: Mapping[str, UpcomingNodes] = field(default_factory=dict)
    """By group; groups without upcoming nodes are left out."""
    unready: frozenset[str] = frozenset()
    """Nodes that are unready, or whose drivers are missing."""
    skipped_groups: Mapping[str, str] = field(default_factory=dict)
    """Groups that are not safe to scale up now, and why."""


T = TypeVar("T")
FRESH = timedelta(seconds=30)
NOT_ANSWERING = "the cloud provider does not answer for it"
IN_BACKOFF = "in backoff after failed scale-up"
UNHEALTHY = "not healthy"


@dataclass(frozen=True, slots=True, eq=False)
class KnownObjects:
    """Objects of the API server that are not in the snapshot."""

    daemon_sets: Mapping[str, DaemonSet]
    drivers: Mapping[str, CSIDriver]
    classes: Mapping[str, StorageClass]

    def driver_names(self) -> frozenset[str]:
        """The names of the CSI drivers in CSIDrivers and StorageClasses."""
        provisioners = (one.provisioner for one in self.classes.values())
        csi = (name for name in provisioners if name and not name.startswith("kubernetes.io/"))
        return frozenset({*self.drivers, *csi})


class _GroupCache(Generic[T]):
    """A value for each group, valid while its inputs are the same."""

    def __init__(self) -> None:
        self._entries: dict[str, tuple[tuple[object, ...], datetime, T]] = {}

    def get(self, name: str, basis: tuple[object, ...], now: datetime, make: Callable[[], T]) -> T:
        known = self._entries.get(name)
        if known is not None and known[0] == basis and now < known[1]:
            return known[2]
        made = make()
        self._entries[name] = (basis, now + FRESH, made)
        return made

    def keep_only(self, names: Collection[str]) -> None:
        for name in self._entries.keys() - names:
            del self._entries[name]


class ClusterViewBuilder:
    """The state kept from loop to loop, from which each loop's view is built."""

    def __init__(self, snapshot: Snapshot, known: KnownObjects, options: AutoscalerOptions) -> None:
        self.snapshot = snapshot
        self._known = known
        self._options = options
        self._gate = snapshot.profile.gates.enabled(VOLUME_LIMIT_SCALING)
        self._instances: list[object] = []
        self._criteria: _GroupCache[ReadinessCriteria] = _GroupCache()
        self._template_views: _GroupCache[NodeGroupView] = _GroupCache()
        self._views: _GroupCache[NodeGroupView] = _GroupCache()
        self._daemons_version = 0
        self.pending_pods = PendingPods()
        self.node_states = NodeStates(
            options, snapshot.cluster.csinodes.get, waits_for_drivers=self._gate
        )
        self.registry = ClusterStateRegistry(options)
        self.backoff = NodeGroupBackoff(options)
        self.templates = TemplateNodeInfoProvider(options)
        self.groups: Mapping[str, str] = {}
        """By provider ID, the group of an instance."""
        self.views: Mapping[str, NodeGroupView] = {}
        """The groups of the last view."""

    def on_event(self, event: ClusterEvent) -> None:
        """Update the state with an added, updated or deleted object."""
        self.pending_pods.on_event(event)
        self.node_states.on_event(event)

    def daemons_changed(self) -> None:
        """Note that a DaemonSet was added, updated or deleted."""
        self._daemons_version += 1

    def update(self, cloud: CloudState, now: datetime) -> None:
        """Update nodes and groups with the cloud's state."""
        instances: list[object] = [info.instances for info in cloud.groups.values()]
        same = len(instances) == len(self._instances)
        if not same or any(a is not b for a, b in zip(instances, self._instances, strict=True)):
            self._instances = instances
            self.groups = group_by_provider_id(cloud.groups.values())
        self.node_states.assign(self.groups)
        self.node_states.update(self._readiness_criteria(cloud, now), now)
        self.registry.update(cloud, self.node_states, now)
        for kept in (self._criteria, self._template_views, self._views):
            kept.keep_only(cloud.groups.keys())
        self.templates.forget_others(cloud.groups.keys())

    def _readiness_criteria(self, cloud: CloudState, now: datetime) -> dict[str, ReadinessCriteria]:
        context = self._template_context(now)

        def readiness_criteria(name: str, info: NodeGroupInfo) -> ReadinessCriteria:
            return self.templates.readiness_criteria(info, self.node_states.of_group(name), context)

        return {
            name: self._criteria.get(
                name, self._basis(name, info, context), now, partial(readiness_criteria, name, info)
            )
            for name, info in cloud.groups.items()
        }

    def unschedulable_pods(self, now: datetime) -> UnschedulablePods:
        """The pods that a scale-up would help, and how many are ignored."""
        return unschedulable_pods(self.pending_pods, self._options, now, self.snapshot.priority)

    def build(self, cloud: CloudState, counted: UnschedulablePods, now: datetime) -> ClusterView:
        """Build the view of a loop."""
        context = self._template_context(now)
        groups = cloud.groups.items()
        self.views = {name: self._view(name, info, context) for name, info in groups}
        unready = (
            *self.node_states.in_state(NodeReadiness.UNREADY),
            *self.node_states.in_state(NodeReadiness.MISSING_DRIVERS),
        )
        return ClusterView(
            snapshot=self.snapshot,
            now=now,
            options=self._options,
            groups=self.views,
            group_of=self.node_states.group_of,
            unschedulable_pods=counted.pods,
            upcoming=self.registry.upcoming(),
            unready=frozenset(unready),
            skipped_groups=self.skipped_groups(cloud, now),
        )

    def skipped_groups(self, cloud: CloudState, now: datetime) -> dict[str, str]:
        """The groups that are not safe to scale up now, and why."""
        found: dict[str, str] = {}
        for name, info in cloud.groups.items():
            if info.stale:
                found[name] = NOT_ANSWERING
            elif self.backoff.backoff_status(name, now) is not None:
                found[name] = IN_BACKOFF
            elif not self.registry.group_is_healthy(name):
                found[name] = UNHEALTHY
        return found

    def problems(self, group: str) -> tuple[str, ...]:
        """Settings of a group that cannot be used."""
        view = self.views.get(group)
        return view.problems if view is not None else ()

    def outliers(self, group: str) -> tuple[DriverOutlier, ...]:
        """Nodes of a group whose drivers or limits differ from its template's."""
        view = self.views.get(group)
        return view.outliers if view is not None else ()

    def drivers(self, group: str) -> tuple[str, ...]:
        """The CSI drivers that a group's next node is expected to have."""
        view = self.views.get(group)
        return view.drivers if view is not None else ()

    def _template_context(self, now: datetime) -> TemplateContext:
        daemons = tuple(self._known.daemon_sets.values())
        names = self._known.driver_names()
        pending = self._pending_drivers(names)
        return TemplateContext(
            self.snapshot, now, daemons, names, pending, waits_for_drivers=self._gate
        )

    def _pending_drivers(self, known: frozenset[str]) -> frozenset[str]:
        """Return the drivers of volumes of pending pods, of those that the cluster has."""
        found: set[str] = set()
        for pod in self.pending_pods.with_volumes():
            if found >= known:
                break
            found |= {one.driver for one in self.snapshot.requirements_of(pod).attach} & known
        return frozenset(found)

    def _basis(
        self, name: str, info: NodeGroupInfo, context: TemplateContext
    ) -> tuple[object, ...]:
        inputs = info.options, info.template, info.price, info.template_error
        versions = self.node_states.versions[name], self._daemons_version
        return *inputs, *versions, context.drivers, context.pending_drivers

    def _view(self, name: str, info: NodeGroupInfo, context: TemplateContext) -> NodeGroupView:
        def view() -> NodeGroupView:
            return self.templates.view(info, self.node_states.of_group(name), context)

        made = self._template_views.get(name, self._basis(name, info, context), context.now, view)
        seen = (info.group, info.target, info.instances, made)
        return self._views.get(name, seen, context.now, partial(_resized, made, info))


def _resized(view: NodeGroupView, info: NodeGroupInfo) -> NodeGroupView:
    """Return the view with the current limits, target size and instances."""
    return replace(view, group=info.group, target=info.target, instances=info.instances)
