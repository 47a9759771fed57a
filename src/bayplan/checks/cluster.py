"""The cluster that is checked: its objects, indexed once for all check groups.

Of a live cluster it is known which kinds could be read. Of a dump it is unknown whether a kind was
left out or has no objects, so a kind counts as read if there is at least one object of it.

For a dump, "now" is the latest timestamp in it, so that young objects still count as young.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import TypeVar, cast

from bayplan.autoscaler.providers.declared.declaration import Declaration, declare
from bayplan.fit import Profile, Snapshot
from bayplan.fit.explanation.cause import PendingGroup, group_pending_pods, list_pending_pods
from bayplan.fit.state.volume_report import VolumeReport
from bayplan.kube.codec import ObjectError
from bayplan.kube.coordination import Lease
from bayplan.kube.events import Event
from bayplan.kube.meta import Condition, KubeObject, ObjectReference
from bayplan.kube.nodes import Node
from bayplan.kube.pods import Pod
from bayplan.kube.registrations import NodeGroup
from bayplan.kube.times import read_time
from bayplan.kube.volcano import PodGroup, Queue
from bayplan.kube.workloads import PriorityClass
from bayplan.queues.queue_snapshot import QueueSnapshot, priorities_in, queue_snapshot

T = TypeVar("T", bound=KubeObject)
GRACE = timedelta(minutes=5)
LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(eq=False)
class CheckedCluster:
    """A cluster to check."""

    objects: Sequence[KubeObject]
    now: datetime
    profile: Profile = field(default_factory=lambda: Profile().by_scheduler())
    read: frozenset[type[KubeObject]] | None = None
    """The kinds that were read; None to take the kinds of the objects."""
    server_version: str = ""
    """The version that a live API server reports, such as `v1.36.4`."""
    groups: Sequence[Declaration] = ()
    """Node groups declared in a file; they take precedence over those of the cluster."""
    left_out: Sequence[ObjectError] = ()
    """Objects that were read and are invalid."""
    grace: timedelta = GRACE
    """Younger objects are not reported, since they may still be starting."""
    namespace: str = ""
    """The namespace whose pods, claims and groups are reported; empty for all. All count."""

    @cached_property
    def _by_type(self) -> dict[type[KubeObject], list[KubeObject]]:
        found: defaultdict[type[KubeObject], list[KubeObject]] = defaultdict(list)
        for one in self.objects:
            found[type(one)].append(one)
        return dict(found)

    def all(self, kind: type[T]) -> list[T]:
        """Return all objects of a kind."""
        return cast("list[T]", self._by_type.get(kind, []))

    def has_read(self, kind: type[KubeObject]) -> bool:
        """Return whether objects of a kind were read."""
        return kind in (self._by_type if self.read is None else self.read)

    def reports(self, key: str) -> bool:
        """Return whether findings about a namespaced object are reported."""
        return not self.namespace or key.startswith(f"{self.namespace}/")

    @cached_property
    def snapshot(self) -> Snapshot:
        """The snapshot of the cluster; invalid objects are among its problems."""
        return Snapshot(self.objects, profile=self.profile)

    @cached_property
    def nodes(self) -> dict[str, Node]:
        """Nodes by name."""
        return {one.name: one for one in self.all(Node)}

    @cached_property
    def pods(self) -> dict[str, Pod]:
        """Pods by key."""
        return {one.key: one for one in self.all(Pod)}

    @cached_property
    def volumes(self) -> list[VolumeReport]:
        """Attachments in use and limits, by node and driver."""
        return self.snapshot.volumes()

    @cached_property
    def declared(self) -> tuple[Declaration, ...]:
        """Node groups that a file or NodeGroups of the cluster declare."""
        found = {
            one.group: one
            for one in (
                declare(group.name, group.spec, about=_reference(group))
                for group in sorted(self.all(NodeGroup), key=lambda one: one.name, reverse=True)
            )
        }
        return tuple({**found, **{one.group: one for one in self.groups}}.values())

    @cached_property
    def queues(self) -> QueueSnapshot | None:
        """Queues and the groups that wait in them; None if there are no queues."""
        if not self.all(Queue) and not self.all(PodGroup):
            return None
        return queue_snapshot(self.objects, priority_of=priorities_in(self.all(PriorityClass)))

    @cached_property
    def waiting(self) -> list[PendingGroup]:
        """Pending pods by what they wait for, equivalent pods together."""
        groups = self.queues.waiting() if self.queues is not None else ()
        held = {
            pod: f"queue {one.queue}: {one.text}"
            for one in groups
            if one.is_for_queue
            for pod in one.pods
        }
        return group_pending_pods(self.snapshot, list_pending_pods(self.snapshot), held)

    def is_young(self, moment: str | None) -> bool:
        """Return whether a timestamp is within the grace period; False without a timestamp."""
        time = read_time(moment)
        return time is not None and time > self.now - self.grace


def readiness(node: Node) -> Condition | None:
    """Return the node's Ready condition, if it has one."""
    return next((one for one in node.status.conditions if one.type == "Ready"), None)


def _reference(one: KubeObject) -> ObjectReference:
    return ObjectReference(kind=type(one).__name__, name=one.name, uid=one.metadata.uid)


def latest_moment(objects: Iterable[KubeObject]) -> datetime:
    """Return the latest timestamp in the objects; LONG_AGO if they have none."""
    texts = max((text for one in objects for text in _moments(one)), default="")
    return read_time(texts) or LONG_AGO


def _moments(one: KubeObject) -> Iterator[str]:
    """Yield an object's timestamps in UTC as texts, which sort like the times."""
    meta = one.metadata
    texts = [meta.creation_timestamp, meta.deletion_timestamp]
    if isinstance(one, Event):
        texts += [one.event_time, one.deprecated_last_timestamp]
    if isinstance(one, Lease):
        texts.append(one.spec.renew_time)
    if isinstance(one, Pod | Node):
        texts += [condition.last_transition_time for condition in one.status.conditions]
    yield from (text for text in texts if text and text.endswith("Z") and read_time(text))
