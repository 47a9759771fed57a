"""Queueing hints of plugins: the kinds of objects whose changes may help a pod that was refused,
each with a function that decides whether this change may.

A hint is used only for pods that its plugin was the first to refuse on some node (or before any
node was evaluated). It may be wrong in one direction only: a pod that is queued again in vain is
refused again, one that is not queued stays pending for nothing. So the rule is: when unsure, queue.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import msgspec

from bayplan.fit.profile import DEFAULT_PLUGINS, PluginSet
from bayplan.fit.signatures.signature import PodSignature
from bayplan.fit.state.cluster import ClusterState
from bayplan.fit.volumes.objects import claims_of
from bayplan.kube.meta import KubeObject
from bayplan.kube.nodes import Node
from bayplan.kube.pods import Pod

EventAction = Literal["added", "updated", "deleted"]


class ClusterEvent(msgspec.Struct, frozen=True):
    """An object was added, updated or deleted."""

    kind: type[KubeObject]
    action: EventAction
    before: KubeObject | None = None
    after: KubeObject | None = None

    @classmethod
    def of(cls, before: KubeObject | None, after: KubeObject | None) -> ClusterEvent:
        """Return the event that leads from one state of an object to another."""
        if after is None:
            if before is None:
                raise ValueError("an event is about an object")
            return cls(type(before), "deleted", before)
        return cls(type(after), "updated" if before else "added", before, after)

    @property
    def key(self) -> str:
        """The object's key."""
        subject = self.after or self.before
        return subject.key if subject is not None else ""


@dataclass(frozen=True, slots=True, eq=False)
class UnschedulablePod:
    """A pod that was refused, as hints see it."""

    pod: Pod
    cluster: ClusterState
    plugins: PluginSet = DEFAULT_PLUGINS
    """What it is filtered by."""

    @property
    def signature(self) -> PodSignature:
        """The pod's signature, computed on demand."""
        return self.cluster.signatures.of(self.pod)

    @property
    def claims(self) -> frozenset[str]:
        """The keys of the claims that it names."""
        return frozenset(claims_of(self.pod))


Hint = Callable[[UnschedulablePod, ClusterEvent], bool]
"""Whether a change may unblock a pod."""
Hints = Mapping[type[KubeObject], Hint]
"""By kind; changes of other kinds cannot help."""


def any_change(pending: UnschedulablePod, event: ClusterEvent) -> bool:  # noqa: ARG001 - for every event
    """Unsure: queue the pod."""
    return True


def is_new(pending: UnschedulablePod, event: ClusterEvent) -> bool:  # noqa: ARG001 - for every pod
    """Whether the object is new."""
    return event.before is None


def is_new_or_relabelled(pending: UnschedulablePod, event: ClusterEvent) -> bool:  # noqa: ARG001 - for every pod
    """Whether the object is new or has other labels."""
    before, after = event.before, event.after
    if after is None:
        return False
    return before is None or before.metadata.labels != after.metadata.labels


def is_own_claim(pending: UnschedulablePod, event: ClusterEvent) -> bool:
    """Whether one of the pod's own claims was added or updated."""
    return event.after is not None and event.key in pending.claims


def is_newly_suitable(event: ClusterEvent, suits: Callable[[Node], bool]) -> bool:
    """Whether a node suits that was not there, or did not suit before."""
    before, after = event.before, event.after
    if not isinstance(after, Node) or not suits(after):
        return False
    return not isinstance(before, Node) or not suits(before)


def counted_node(pod: KubeObject | None) -> str:
    """Return the node where a pod counts: its own, or the nominated one; empty if none."""
    if not isinstance(pod, Pod) or pod.is_terminal:
        return ""
    return pod.spec.node_name or pod.status.nominated_node_name


def removed_pod(event: ClusterEvent) -> Pod | None:
    """Return the pod as it was on a node, if it is gone from there or changed."""
    before = event.before
    if not isinstance(before, Pod) or not counted_node(before) or _counts_the_same(event):
        return None
    return before


def added_pod(event: ClusterEvent) -> Pod | None:
    """Return the pod as it is on a node, if it was not so before."""
    after = event.after
    if not isinstance(after, Pod) or not counted_node(after) or _counts_the_same(event):
        return None
    return after


def _counts_the_same(event: ClusterEvent) -> bool:
    """Whether a pod that changed counts where and as it did."""
    before, after = event.before, event.after
    return (
        isinstance(before, Pod)
        and isinstance(after, Pod)
        and counted_node(before) == counted_node(after)
        and before.metadata.labels == after.metadata.labels
        and before.is_terminating == after.is_terminating
        and before.spec == after.spec
    )
