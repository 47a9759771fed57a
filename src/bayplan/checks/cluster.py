"""What was read of a cluster, sorted once for all check groups.

Of a live cluster it is known which kinds could be read. Of a dump nobody knows whether a kind was
left out or has no objects, so a kind counts as read if there is one object of it.

A dump stands still: its now is the latest moment that it names, or everything in it would be old.
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
from bayplan.fit.explanation.waiting import WaitingAlike, waiting_alike, waiting_pods
from bayplan.fit.state.volume_report import VolumeReport
from bayplan.kube.codec import ObjectError
from bayplan.kube.coordination import Lease
from bayplan.kube.events import Event
from bayplan.kube.meta import Condition, KubeObject, ObjectReference
from bayplan.kube.nodes import Node
from bayplan.kube.pods import Pod
from bayplan.kube.queueing import PodGroup, Queue
from bayplan.kube.registrations import NodeGroup
from bayplan.kube.times import read_time
from bayplan.kube.workloads import PriorityClass
from bayplan.queues.survey import Survey, priorities_in, survey

T = TypeVar("T", bound=KubeObject)
GRACE = timedelta(minutes=5)
LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(eq=False)
class CheckedCluster:
    """A cluster to look at."""

    objects: Sequence[KubeObject]
    now: datetime
    profile: Profile = field(default_factory=lambda: Profile().by_scheduler())
    read: frozenset[type[KubeObject]] | None = None
    """The kinds that were read; None if that is to be told by what is there."""
    server_version: str = ""
    """As a live API server says it, such as `v1.36.4`."""
    groups: Sequence[Declaration] = ()
    """Node groups as a file declares them; they count over those of the cluster."""
    left_out: Sequence[ObjectError] = ()
    """What could not be used of what was read."""
    grace: timedelta = GRACE
    """Whatever is younger may still be on its way."""
    namespace: str = ""
    """The one whose pods, claims and groups are told of; empty for all. All of them count."""

    @cached_property
    def _by_type(self) -> dict[type[KubeObject], list[KubeObject]]:
        found: defaultdict[type[KubeObject], list[KubeObject]] = defaultdict(list)
        for one in self.objects:
            found[type(one)].append(one)
        return dict(found)

    def all(self, kind: type[T]) -> list[T]:
        """All objects of a kind."""
        return cast("list[T]", self._by_type.get(kind, []))

    def sees(self, kind: type[KubeObject]) -> bool:
        """Whether objects of a kind would be known if there were any."""
        return kind in (self._by_type if self.read is None else self.read)

    def tells_of(self, key: str) -> bool:
        """Whether a namespaced object is told of."""
        return not self.namespace or key.startswith(f"{self.namespace}/")

    @cached_property
    def snapshot(self) -> Snapshot:
        """The cluster as the model has it; what the model cannot use is among its problems."""
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
        """Places for volumes, by node and driver."""
        return self.snapshot.volumes()

    @cached_property
    def declared(self) -> tuple[Declaration, ...]:
        """Node groups as a file or NodeGroups of the cluster declare them."""
        found = {
            one.group: one
            for one in (
                declare(group.name, group.spec, about=_reference(group))
                for group in sorted(self.all(NodeGroup), key=lambda one: one.name, reverse=True)
            )
        }
        return tuple({**found, **{one.group: one for one in self.groups}}.values())

    @cached_property
    def queues(self) -> Survey | None:
        """Queues and who waits in them; None where there are none."""
        if not self.all(Queue) and not self.all(PodGroup):
            return None
        return survey(self.objects, priority_of=priorities_in(self.all(PriorityClass)))

    @cached_property
    def waiting(self) -> list[WaitingAlike]:
        """What pods without a node wait for, those alike together."""
        groups = self.queues.waiting() if self.queues is not None else ()
        held = {
            pod: f"queue {one.queue}: {one.text}"
            for one in groups
            if one.is_for_queue
            for pod in one.pods
        }
        return waiting_alike(self.snapshot, waiting_pods(self.snapshot), held)

    def is_young(self, moment: str | None) -> bool:
        """Whether something is so new that it may still be on its way; what says no time is
        not.
        """
        said = read_time(moment)
        return said is not None and said > self.now - self.grace


def readiness(node: Node) -> Condition | None:
    """What a node says of being ready, if it says anything."""
    return next((one for one in node.status.conditions if one.type == "Ready"), None)


def _reference(one: KubeObject) -> ObjectReference:
    return ObjectReference(kind=type(one).__name__, name=one.name, uid=one.metadata.uid)


def latest_moment(objects: Iterable[KubeObject]) -> datetime:
    """The latest moment that objects name; long ago if they name none."""
    texts = max((text for one in objects for text in _moments(one)), default="")
    return read_time(texts) or LONG_AGO


def _moments(one: KubeObject) -> Iterator[str]:
    """Moments as the API writes them, whose order is that of their texts."""
    meta = one.metadata
    said = [meta.creation_timestamp, meta.deletion_timestamp]
    if isinstance(one, Event):
        said += [one.event_time, one.deprecated_last_timestamp]
    if isinstance(one, Lease):
        said.append(one.spec.renew_time)
    if isinstance(one, Pod | Node):
        said += [condition.last_transition_time for condition in one.status.conditions]
    yield from (text for text in said if text and text.endswith("Z") and read_time(text))
