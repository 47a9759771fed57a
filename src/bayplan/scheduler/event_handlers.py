"""Event handlers: changes in the cluster, passed to the queue and to volume binding.

Pods of ours that have no node go into the queue, pods that have one leave it; then the queue is
asked whom the event may help. Until the snapshot has the whole picture, pods are only collected.
"""

from __future__ import annotations

from bayplan.client.resources import resource_of
from bayplan.fit.hints import ClusterEvent
from bayplan.kube.meta import KubeObject, ObjectMeta
from bayplan.kube.pods import Pod
from bayplan.observe import ObjectProblem, Observer
from bayplan.scheduler import messages
from bayplan.scheduler.context import SchedulerContext
from bayplan.scheduler.volumes import VolumeBinder


class EventHandlers:
    """Listens to the observer of a live snapshot."""

    def __init__(
        self, context: SchedulerContext, volumes: VolumeBinder, observer: Observer
    ) -> None:
        self._context = context
        self._volumes = volumes
        self._early: list[Pod] | None = []
        observer.listen(self._on_event)
        observer.invalid.listen(self._set_aside)

    def start(self) -> None:
        """Enqueue the pods observed before the start, the oldest first."""
        early, self._early = self._early or [], None
        latest = {pod.metadata.uid: pod for pod in early}
        for pod in sorted(latest.values(), key=lambda p: p.metadata.creation_timestamp or ""):
            if self._waits(pod):
                self._context.enqueue(pod)

    def _on_event(self, event: ClusterEvent) -> None:
        """Handle a change that the snapshot shows."""
        self._context.known_refusals.clear()
        self._volumes.on_event(event)
        before, after = event.before, event.after
        if not isinstance(before, Pod | None) or not isinstance(after, Pod | None):
            self._context.wake(event)
            return
        self._on_pod_event(event, before, after)

    def _on_pod_event(self, event: ClusterEvent, before: Pod | None, after: Pod | None) -> None:
        context = self._context
        self._admit(before, after)
        if _node(before) or _node(after) or _nominated(before) != _nominated(after):
            context.wake(event)
        elif before is not None and after is not None:
            now = context.clock.monotonic()
            if context.queue.wake_one(after.metadata.uid, event, now, why="PodUpdate"):
                context.wakeup.set()

    def _admit(self, before: Pod | None, after: Pod | None) -> None:
        """Enqueue pods of ours without a node; remove those that have one, or are terminating."""
        if after is None or after.spec.node_name or after.is_terminal or after.is_terminating:
            gone = after if after is not None else before
            if gone is not None:
                self._context.leave(gone.metadata.uid)
        elif self._context.is_ours(after):
            if self._early is not None:
                self._early.append(after)
            elif after.metadata.uid in self._context.queue or self._waits(after):
                self._context.enqueue(after)

    def _waits(self, pod: Pod) -> bool:
        """Whether a pod has no node for all that is known: the watch may lag behind a look-up."""
        known = self._context.snapshot.get(Pod, pod.key)
        same = known is not None and known.metadata.uid == pod.metadata.uid
        return known is not None and same and not known.spec.node_name

    def _set_aside(self, problem: ObjectProblem) -> None:
        """Record events about objects that cannot be read: a pod of ours is not scheduled, others
        are not used, or as they were before.
        """
        context = self._context
        pod = problem.object if isinstance(problem.object, Pod) else None
        if pod is not None and not context.is_ours(pod):
            return
        is_pod = problem.kind is Pod
        notice = messages.unreadable_pod(problem.text) if is_pod else messages.unused(problem.text)
        context.note(context.first_name, _reference(problem), notice)
        if pod is not None:
            condition = messages.refused_condition(notice.text, "SchedulerError", context.moment())
            context.statuses.patch_status(pod, condition, None)


def _node(pod: Pod | None) -> str:
    return "" if pod is None else pod.spec.node_name


def _nominated(pod: Pod | None) -> str:
    return "" if pod is None else pod.status.nominated_node_name


def _reference(problem: ObjectProblem) -> KubeObject:
    """Return the reference of an object that is set aside."""
    resource = resource_of(problem.kind)
    namespace, _, name = problem.key.rpartition("/")
    meta = ObjectMeta(namespace=namespace, name=name, uid=problem.uid)
    return KubeObject(api_version=resource.api_version, kind=resource.kind, metadata=meta)
