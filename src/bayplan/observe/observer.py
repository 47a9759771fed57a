"""What informers tell, put into a snapshot: checked, in order, and never in the middle of a try.

`take` is the handler of any number of informers. Each change is checked first (an object that could
mislead a decision is set aside and told in `aside`), made slim, and applied at once, or, while a
fork of the snapshot is open, when it closes: whoever keeps one open across an await calls `settle`
after it. Listeners hear of a change when the snapshot shows it, with what it showed before: a pod
that was assumed on a node (or for which one was kept), and turns out to be elsewhere, was there.

The informers' copies and the snapshot share their objects; nothing is kept twice.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from bayplan.client import Change
from bayplan.fit import Snapshot
from bayplan.fit.events import Event
from bayplan.fit.plugins.hints import place_of
from bayplan.kube.codec import ObjectError
from bayplan.kube.loading.collector import keep_spec, slim, slim_around
from bayplan.kube.meta import KubeObject
from bayplan.kube.pods import Pod
from bayplan.kube.validation import check, check_again
from bayplan.observe.setaside import Problem, SetAside, unsound

Listener = Callable[[Event], None]


class Observer:
    """Keeps a snapshot as informers say the cluster is."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self.aside = SetAside()
        self._listeners: list[Listener] = []
        self._waiting: deque[Event] = deque()

    def listen(self, listener: Listener) -> None:
        """Call that for every change, once the snapshot shows it."""
        self._listeners.append(listener)

    def take(self, change: Change[KubeObject]) -> None:
        """Take one change from an informer."""
        event = self._gone(change) if change.type == "deleted" else self._seen(change)
        if event is not None:
            self._waiting.append(event)
            self.settle()

    def unfit(self, problem: Problem, known: KubeObject | None) -> None:
        """Take note of an object that does not fit its type; `known` is its last good version."""
        self.aside.put(problem, known)

    def settle(self) -> None:
        """Apply what came while a fork was open, unless one still is."""
        while self._waiting and not self.snapshot.is_forked:
            self._apply(self._waiting.popleft())

    def _seen(self, change: Change[KubeObject]) -> Event | None:
        obj = change.object
        try:
            self._check(obj, change.old)
        except ObjectError as error:
            self.aside.put(unsound(obj, error), change.old)
            return None
        return Event.of(self.aside.take_back(type(obj), obj.key, change.old), obj)

    def _check(self, obj: KubeObject, old: KubeObject | None) -> None:
        """Check an object, and make it slim.

        Most of what is told of a pod is where it is and how it stands, while its spec stays.
        """
        sound = isinstance(old, Pod) and (Pod, obj.key) not in self.aside
        if isinstance(obj, Pod) and isinstance(old, Pod) and sound and keep_spec(obj, old):
            check_again(obj)
            slim_around(obj)
        else:
            check(obj)
            slim(obj)

    def _gone(self, change: Change[KubeObject]) -> Event | None:
        known = change.old if change.old is not None else change.object
        before = self.aside.take_back(type(known), known.key, known)
        return None if before is None else Event.of(before, None)

    def _apply(self, event: Event) -> None:
        counted = self._counted(event)
        if event.after is None:
            self.snapshot.observe_gone(event.kind, event.key)
        elif not self._observe(event.after, event.before):
            return
        if counted is not None and place_of(self._pod(event.key)) != place_of(counted):
            event = Event.of(counted, event.after)
        for listener in tuple(self._listeners):
            listener(event)

    def _counted(self, event: Event) -> Pod | None:
        """The pod of an event, if it counts on another node than it was seen on."""
        if not isinstance(event.before, Pod) or event.before.spec.node_name:
            return None
        counted = self._pod(event.key)
        return None if place_of(counted) == place_of(event.before) else counted

    def _pod(self, key: str) -> Pod | None:
        return self.snapshot.counted_pod(key)

    def _observe(self, obj: KubeObject, before: KubeObject | None) -> bool:
        """Put an object; what the model refuses it refuses whole, and it is set aside."""
        try:
            self.snapshot.observe(obj, own=True)
        except ValueError as error:
            self.aside.put(Problem(type(obj), obj.key, str(error), obj, obj.metadata.uid), before)
            return False
        return True
