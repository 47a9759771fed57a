"""Queueing hints of the snapshot: signatures, priorities, and which events may help which pods."""

from __future__ import annotations

from collections.abc import Collection, Hashable

from bayplan.fit import Refusal, Snapshot
from bayplan.fit.hints import ClusterEvent, may_concern, may_unblock
from bayplan.fit.plugins.registry import BY_NAME
from bayplan.fit.volumes.objects import claims_of
from bayplan.kube.pods import Pod
from bayplan.kube.storage import PersistentVolumeClaim


class SnapshotHints:
    """Queueing hints by a snapshot."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot

    def priority(self, pod: Pod) -> int:
        """Return the priority of a pod."""
        return self._snapshot.priority(pod)

    def signature(self, pod: Pod) -> Hashable:
        """Return a key that is equal for pods that get one answer; None if it has no equal."""
        snapshot = self._snapshot
        brief = (
            snapshot.cluster.signatures.of(pod),
            pod.spec.scheduler_name,
            snapshot.priority(pod),
            pod.spec.preemption_policy,
            pod.status.nominated_node_name,
            pod.spec.node_name,
        )
        if not pod.spec.volumes:
            return brief
        evaluation = snapshot.evaluation(pod)
        if isinstance(evaluation, Refusal):
            return None  # the refusal names the pod's own claims
        return (*brief, evaluation.request.requirements)

    def concerns(self, plugins: frozenset[str], event: ClusterEvent) -> bool:
        """Whether an event may help any pod that these plugins refused."""
        return may_concern(plugins, event)

    def marks(self, pod: Pod) -> Collection[str]:
        """Return the claims of a pod, which distinguish it from others of its signature."""
        return claims_of(pod) if pod.spec.volumes else ()

    def sets_apart(self, plugins: frozenset[str], event: ClusterEvent) -> Collection[str] | None:
        """Return the claims whose pods an event may help, unlike others of their signature."""
        if event.kind is PersistentVolumeClaim:
            return (event.key,)
        found: list[str] = []
        for name in plugins:
            plugin = BY_NAME.get(name)
            said = plugin.sets_apart(event) if plugin and plugin.sets_apart else ()
            if said is None:
                return None
            found += said
        return found

    def helps(self, pod: Pod, plugins: frozenset[str], event: ClusterEvent) -> bool:
        """Whether an event may unblock a pod that these plugins refused."""
        return may_unblock(self._snapshot, pod, plugins, event)
