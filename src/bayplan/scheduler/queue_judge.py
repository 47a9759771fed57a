"""What the queue asks of the model: who is alike, who is more important, what may help whom."""

from __future__ import annotations

from collections.abc import Collection, Hashable

from bayplan.fit import Refusal, Snapshot
from bayplan.fit.events import Event
from bayplan.fit.hints import may_concern, may_unblock
from bayplan.fit.plugins.registry import BY_NAME
from bayplan.fit.volumes.objects import claims_of
from bayplan.kube.pods import Pod
from bayplan.kube.storage import PersistentVolumeClaim


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
        return (*brief, evaluation.question.requirements)

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
        found: list[str] = []
        for name in plugins:
            plugin = BY_NAME.get(name)
            said = plugin.sets_apart(event) if plugin and plugin.sets_apart else ()
            if said is None:
                return None
            found += said
        return found

    def helps(self, pod: Pod, plugins: frozenset[str], event: Event) -> bool:
        """Whether an event may unblock a pod that these plugins refused."""
        return may_unblock(self._snapshot, pod, plugins, event)
