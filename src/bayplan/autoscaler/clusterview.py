"""What a loop decides on: the cloud's answers, the cluster's nodes, and what of both is on its way.

What has not changed is not worked out again: a group's template and what it promises are made anew
when one of its nodes stands otherwise, its drivers report, the cloud says something else, a
DaemonSet changes, or half a minute has passed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Generic, TypeVar

from bayplan.autoscaler.cloudstate.backoff import Backoff
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
    Upcoming,
    group_by_provider_id,
)
from bayplan.autoscaler.options import AutoscalerOptions
from bayplan.autoscaler.templates import NodeGroupView, TemplateContext, Templates
from bayplan.fit import Snapshot
from bayplan.fit.events import Event
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
    """By node, the name of its group; a node that is in none is not here."""
    waiting: tuple[Pod, ...] = ()
    """The pods that count."""
    upcoming: Mapping[str, Upcoming] = field(default_factory=dict)
    """By group; one with nothing on its way is not here."""
    unready: frozenset[str] = frozenset()
    """Nodes that are not ready, and not about to be."""
    closed: Mapping[str, str] = field(default_factory=dict)
    """Groups that nothing is bought of now, and why."""


T = TypeVar("T")
FRESH = timedelta(seconds=30)
NOT_ANSWERING = "the cloud does not answer for it"
RESTING = "in backoff after failed scale-up"
UNHEALTHY = "not healthy"


@dataclass(frozen=True, slots=True, eq=False)
class KnownObjects:
    """What the API server has said, beside the snapshot."""

    daemon_sets: Mapping[str, DaemonSet]
    drivers: Mapping[str, CSIDriver]
    classes: Mapping[str, StorageClass]

    def driver_names(self) -> frozenset[str]:
        """The CSI drivers that the cluster knows."""
        made_by = (one.provisioner for one in self.classes.values())
        csi = (name for name in made_by if name and not name.startswith("kubernetes.io/"))
        return frozenset({*self.drivers, *csi})


class _Kept(Generic[T]):
    """Something made for each group, for as long as what it was made from stays the same."""

    def __init__(self) -> None:
        self._made: dict[str, tuple[tuple[object, ...], datetime, T]] = {}

    def get(self, name: str, basis: tuple[object, ...], now: datetime, make: Callable[[], T]) -> T:
        known = self._made.get(name)
        if known is not None and known[0] == basis and now < known[1]:
            return known[2]
        made = make()
        self._made[name] = (basis, now + FRESH, made)
        return made

    def keep_only(self, names: Collection[str]) -> None:
        for name in self._made.keys() - names:
            del self._made[name]


class ClusterViewBuilder:
    """What is remembered from loop to loop, and the world it makes."""

    def __init__(self, snapshot: Snapshot, known: KnownObjects, options: AutoscalerOptions) -> None:
        self.snapshot = snapshot
        self._known = known
        self._options = options
        self._gate = snapshot.profile.gates.enabled(VOLUME_LIMIT_SCALING)
        self._instances: list[object] = []
        self._promises: _Kept[ReadinessCriteria] = _Kept()
        self._made: _Kept[NodeGroupView] = _Kept()
        self._views: _Kept[NodeGroupView] = _Kept()
        self._daemons_version = 0
        self.waiting = PendingPods()
        self.node_states = NodeStates(
            options, snapshot.cluster.csinodes.get, asks_drivers=self._gate
        )
        self.registry = ClusterStateRegistry(options)
        self.backoff = Backoff(options)
        self.templates = Templates(options)
        self.groups: Mapping[str, str] = {}
        """By what the cloud calls instances."""
        self.views: Mapping[str, NodeGroupView] = {}
        """The groups as they were last seen."""

    def hear(self, event: Event) -> None:
        """An object came, changed or went."""
        self.waiting.hear(event)
        self.node_states.hear(event)

    def daemons_changed(self) -> None:
        """A DaemonSet came, changed or went."""
        self._daemons_version += 1

    def take(self, cloud: CloudState, now: datetime) -> None:
        """Take what the cloud says, and see how everything stands."""
        instances: list[object] = [asked.instances for asked in cloud.groups.values()]
        same = len(instances) == len(self._instances)
        if not same or any(a is not b for a, b in zip(instances, self._instances, strict=True)):
            self._instances = instances
            self.groups = group_by_provider_id(cloud.groups.values())
        self.node_states.assign(self.groups)
        self.node_states.look(self._all_promises(cloud, now), now)
        self.registry.update(cloud, self.node_states, now)
        for kept in (self._promises, self._made, self._views):
            kept.keep_only(cloud.groups.keys())
        self.templates.forget_others(cloud.groups.keys())

    def _all_promises(self, cloud: CloudState, now: datetime) -> dict[str, ReadinessCriteria]:
        scene = self._scene(now)

        def promise(name: str, asked: NodeGroupInfo) -> ReadinessCriteria:
            return self.templates.promise(asked, self.node_states.of_group(name), scene)

        return {
            name: self._promises.get(
                name, self._basis(name, asked, scene), now, partial(promise, name, asked)
            )
            for name, asked in cloud.groups.items()
        }

    def unschedulable_pods(self, now: datetime) -> UnschedulablePods:
        """The pods that count."""
        return unschedulable_pods(self.waiting, self._options, now, self.snapshot.priority)

    def build(self, cloud: CloudState, counted: UnschedulablePods, now: datetime) -> ClusterView:
        """All that is decided on."""
        scene = self._scene(now)
        asked = cloud.groups.items()
        self.views = {name: self._view(name, answer, scene) for name, answer in asked}
        late = (
            *self.node_states.standing(NodeReadiness.UNREADY),
            *self.node_states.standing(NodeReadiness.LATE),
        )
        return ClusterView(
            snapshot=self.snapshot,
            now=now,
            options=self._options,
            groups=self.views,
            group_of=self.node_states.group_of,
            waiting=counted.pods,
            upcoming=self.registry.upcoming(),
            unready=frozenset(late),
            closed=self.closed(cloud, now),
        )

    def closed(self, cloud: CloudState, now: datetime) -> dict[str, str]:
        """The groups that nothing is bought of now, and why."""
        found: dict[str, str] = {}
        for name, asked in cloud.groups.items():
            if asked.stale:
                found[name] = NOT_ANSWERING
            elif self.backoff.resting(name, now) is not None:
                found[name] = RESTING
            elif not self.registry.group_is_healthy(name):
                found[name] = UNHEALTHY
        return found

    def problems(self, group: str) -> tuple[str, ...]:
        """What a group says of itself that cannot be used."""
        view = self.views.get(group)
        return view.problems if view is not None else ()

    def _scene(self, now: datetime) -> TemplateContext:
        daemons = tuple(self._known.daemon_sets.values())
        names = self._known.driver_names()
        return TemplateContext(self.snapshot, now, daemons, names, asks_drivers=self._gate)

    def _basis(self, name: str, asked: NodeGroupInfo, scene: TemplateContext) -> tuple[object, ...]:
        said = asked.options, asked.template, asked.price, asked.template_error
        return *said, self.node_states.versions[name], self._daemons_version, scene.drivers

    def _view(self, name: str, asked: NodeGroupInfo, scene: TemplateContext) -> NodeGroupView:
        def view() -> NodeGroupView:
            return self.templates.view(asked, self.node_states.of_group(name), scene)

        made = self._made.get(name, self._basis(name, asked, scene), scene.now, view)
        seen = (asked.group, asked.target, asked.instances, made)
        return self._views.get(name, seen, scene.now, partial(_resized, made, asked))


def _resized(view: NodeGroupView, asked: NodeGroupInfo) -> NodeGroupView:
    """A view with the bounds, target and instances that the cloud says now."""
    return replace(view, group=asked.group, target=asked.target, instances=asked.instances)
