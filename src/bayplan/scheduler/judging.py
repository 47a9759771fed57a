"""What the queue asks of the model: who is alike, who is more important, what may help whom."""

from __future__ import annotations

from collections.abc import Collection, Hashable

from bayplan.fit import Refusal, Snapshot
from bayplan.fit.events import Event
from bayplan.fit.hints import may_concern, may_unblock
from bayplan.fit.volumes.objects import claims_of
from bayplan.kube.pods import Pod
from bayplan.kube.storage import PersistentVolume, PersistentVolumeClaim

BY_CLAIM = "VolumeRestrictions"
"""Looks at the claims of pods that go."""
BY_SHARED_CLAIM = "NodeVolumeLimits"
"""Looks at the claims of pods that come."""
BY_VOLUME = "VolumeZone"
"""Looks at the volumes that a pod's claims name."""


class ModelJudge:
    """The queue's questions, answered by a snapshot."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot

    def priority(self, pod: Pod) -> int:
        """How important a pod is."""
        return self._snapshot.priority(pod)

    def likeness(self, pod: Pod) -> Hashable:
        """Equal for pods that get the same answer; None for one that is like no other."""
        snapshot = self._snapshot
        brief = (
            snapshot.cluster.shapes.of(pod),
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
        return (*brief, evaluation.question.needs)

    def concerns(self, plugins: frozenset[str], event: Event) -> bool:
        """Whether an event may help anybody whom these plugins refused."""
        return may_concern(plugins, event)

    def marks(self, pod: Pod) -> Collection[str]:
        """Pods that are alike differ by the names of their claims."""
        return claims_of(pod) if pod.spec.volumes else ()

    def sets_apart(self, plugins: frozenset[str], event: Event) -> Collection[str] | None:
        """The claims whose pods an event may help, or not, unlike others that are alike."""
        if event.kind is PersistentVolumeClaim:
            return (event.key,)
        if event.kind is PersistentVolume:
            return None if BY_VOLUME in plugins else ()
        heeded = ((BY_CLAIM, event.before), (BY_SHARED_CLAIM, event.after))
        pods = [pod for plugin, pod in heeded if plugin in plugins and isinstance(pod, Pod)]
        return [claim for pod in pods for claim in self.marks(pod)]

    def helps(self, pod: Pod, plugins: frozenset[str], event: Event) -> bool:
        """Whether an event may unblock a pod that these plugins refused."""
        return may_unblock(self._snapshot, pod, plugins, event)
