"""Applies informers' changes to a snapshot: validated, in order, and never while it is forked.

`handle` is the handler of any number of informers. Each change is validated first (an invalid
object is left out and listed in `invalid`), stripped of unused fields, and applied at once, or,
while a fork of the snapshot is open, when it closes: code that keeps a fork open across an await
calls `apply_deferred` after it. Listeners are called once the snapshot has the change, with the
snapshot's previous version: a pod that was assumed on one node and is observed on another was on
the first.

The informers' caches and the snapshot share their objects; nothing is stored twice.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from bayplan.client import Change
from bayplan.fit import Snapshot
from bayplan.fit.hints import ClusterEvent
from bayplan.fit.plugins.hints import counted_node
from bayplan.kube.codec import ObjectError
from bayplan.kube.manifests.collector import intern_metadata_and_status, intern_texts, reuse_spec
from bayplan.kube.meta import KubeObject
from bayplan.kube.pods import Pod
from bayplan.kube.validation import check, check_again
from bayplan.observe.invalid_objects import InvalidObjects, ObjectProblem, invalid_object

Listener = Callable[[ClusterEvent], None]


class Observer:
    """Keeps a snapshot up to date with informers."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self.invalid = InvalidObjects()
        self._listeners: list[Listener] = []
        self._deferred: deque[ClusterEvent] = deque()

    def listen(self, listener: Listener) -> None:
        """Call the listener for every change, once the snapshot has it."""
        self._listeners.append(listener)

    def handle(self, change: Change[KubeObject]) -> None:
        """Apply one change from an informer, or defer it while the snapshot is forked."""
        event = self._deleted(change) if change.type == "deleted" else self._changed(change)
        if event is not None:
            self._deferred.append(event)
            self.apply_deferred()

    def note_undecodable(self, problem: ObjectProblem, known: KubeObject | None) -> None:
        """Add an object that does not match its type; `known` is its last valid version."""
        self.invalid.put(problem, known)

    def apply_deferred(self) -> None:
        """Apply the changes that came while a fork was open, unless one still is."""
        while self._deferred and not self.snapshot.is_forked:
            self._apply(self._deferred.popleft())

    def _changed(self, change: Change[KubeObject]) -> ClusterEvent | None:
        obj = change.object
        try:
            self._check(obj, change.old)
        except ObjectError as error:
            self.invalid.put(invalid_object(obj, error), change.old)
            return None
        return ClusterEvent.of(self.invalid.resolve(type(obj), obj.key, change.old), obj)

    def _check(self, obj: KubeObject, old: KubeObject | None) -> None:
        """Validate an object, and strip it of unused fields.

        Most changes of a pod are to its status, so an unchanged spec is not validated again.
        """
        sound = isinstance(old, Pod) and (Pod, obj.key) not in self.invalid
        if isinstance(obj, Pod) and isinstance(old, Pod) and sound and reuse_spec(obj, old):
            check_again(obj)
            intern_metadata_and_status(obj)
        else:
            check(obj)
            intern_texts(obj)

    def _deleted(self, change: Change[KubeObject]) -> ClusterEvent | None:
        known = change.old if change.old is not None else change.object
        before = self.invalid.resolve(type(known), known.key, known)
        return None if before is None else ClusterEvent.of(before, None)

    def _apply(self, event: ClusterEvent) -> None:
        counted = self._counted(event)
        if event.after is None:
            self.snapshot.observe_gone(event.kind, event.key)
        elif not self._observe(event.after, event.before):
            return
        if counted is not None and counted_node(self._pod(event.key)) != counted_node(counted):
            event = ClusterEvent.of(counted, event.after)
        for listener in tuple(self._listeners):
            listener(event)

    def _counted(self, event: ClusterEvent) -> Pod | None:
        """Return the event's pod if the snapshot has it on another node than observed."""
        if not isinstance(event.before, Pod) or event.before.spec.node_name:
            return None
        counted = self._pod(event.key)
        return None if counted_node(counted) == counted_node(event.before) else counted

    def _pod(self, key: str) -> Pod | None:
        return self.snapshot.counted_pod(key)

    def _observe(self, obj: KubeObject, before: KubeObject | None) -> bool:
        """Put an object into the snapshot; one that it refuses becomes an invalid object."""
        try:
            self.snapshot.observe(obj, own=True)
        except ValueError as error:
            self.invalid.put(
                ObjectProblem(type(obj), obj.key, str(error), obj, obj.metadata.uid), before
            )
            return False
        return True
