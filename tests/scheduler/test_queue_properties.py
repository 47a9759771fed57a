"""Whatever happens: no pod is lost, none is in two places, none waits for ever."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from bayplan.kube.pods import Pod
from bayplan.scheduler.queue import QueuedPod, SchedulingQueue, SubQueue
from bayplan.scheduler.queue.subqueues import LONGEST_WAIT
from tests.builders import make_pod

pytestmark = pytest.mark.whole


NAMES = st.sampled_from([f"pod-{number}" for number in range(6)])
PLUGINS = st.sampled_from(["NodeResourcesFit", "NodePorts", "VolumeBinding"])


class NameHints:
    """An event is the name of the plugin that it helps; pods of one priority are alike."""

    def __init__(self) -> None:
        self.apart = False
        self.apart_by_name: list[str] = []

    def priority(self, pod: Pod) -> int:
        return pod.spec.priority or 0

    def signature(self, pod: Pod) -> int:
        return pod.spec.priority or 0

    def concerns(self, plugins: frozenset[str], event: str) -> bool:
        return event in plugins

    def marks(self, pod: Pod) -> list[str]:
        return [pod.name]

    def sets_apart(self, plugins: frozenset[str], event: str) -> list[str] | None:
        return None if self.apart else self.apart_by_name

    def helps(self, pod: Pod, plugins: frozenset[str], event: str) -> bool:
        return event in plugins


class QueueMachine(RuleBasedStateMachine):
    """A queue beside the plainest account of what must be in it."""

    def __init__(self) -> None:
        super().__init__()
        self.judge = NameHints()
        self.queue: SchedulingQueue[str] = SchedulingQueue(self.judge)
        self.now = 0.0
        self.there: dict[str, Pod] = {}
        self.flying: dict[str, tuple[QueuedPod, list[str]]] = {}
        """Pods in flight, each with what has happened since it left."""

    @rule(name=NAMES, priority=st.integers(0, 2), gated=st.booleans())
    def put(self, name: str, priority: int, gated: bool) -> None:
        builder = make_pod(name).uid(name).priority(priority)
        pod = (builder.gate("example.com/wait") if gated else builder).obj()
        self.there[name] = pod
        self.queue.put(pod, self.now)

    @rule(name=NAMES)
    def remove(self, name: str) -> None:
        self.there.pop(name, None)
        self.flying.pop(name, None)
        self.queue.remove(name)

    @rule()
    def pop(self) -> None:
        active = [entry for entry in self.queue if entry.subqueue is SubQueue.ACTIVE]
        entry = self.queue.pop(self.now)
        if active:
            assert entry is not None
            assert entry.order <= min(one.order for one in active)
        if entry is not None:
            assert not entry.pod.spec.scheduling_gates
            self.flying[entry.uid] = (entry, [])

    @precondition(lambda self: self.flying)
    @rule(data=st.data(), plugins=st.frozensets(PLUGINS, max_size=2))
    def refuse(self, data: st.DataObject, plugins: frozenset[str]) -> None:
        entry, seen = self.flying.pop(data.draw(st.sampled_from(sorted(self.flying))))
        self.queue.refused(entry, plugins, self.now)
        if entry.pod.spec.scheduling_gates:
            assert entry.subqueue is SubQueue.GATED
        elif plugins & set(seen):
            assert entry.subqueue is SubQueue.BACKOFF
        else:
            assert entry.subqueue is SubQueue.UNSCHEDULABLE

    @precondition(lambda self: self.flying)
    @rule(data=st.data())
    def fail(self, data: st.DataObject) -> None:
        entry, _ = self.flying.pop(data.draw(st.sampled_from(sorted(self.flying))))
        self.queue.failed(entry, self.now)

    @rule(event=PLUGINS, apart=st.none() | st.lists(NAMES, max_size=3))
    def happen(self, event: str, apart: list[str] | None) -> None:
        for _, seen in self.flying.values():
            seen.append(event)
        self.judge.apart, self.judge.apart_by_name = apart is None, apart or []
        self.queue.wake(event, self.now)
        for entry in self.queue:
            assert not (entry.subqueue is SubQueue.UNSCHEDULABLE and event in entry.plugins)

    @rule(seconds=st.sampled_from([0.5, 1.0, 7.0, 400.0]))
    def wait(self, seconds: float) -> None:
        self.now += seconds

    @rule(name=NAMES)
    def activate(self, name: str) -> None:
        self.queue.activate(name)

    @invariant()
    def every_pod_is_somewhere_once(self) -> None:
        assert {entry.uid for entry in self.queue} == set(self.there)
        counted = Counter(entry.subqueue for entry in self.queue)
        for place in set(SubQueue) - {SubQueue.GONE}:
            assert self.queue.count(place) == counted[place]
        for entry in self.queue:
            assert entry.pod is self.there[entry.uid]
            assert (entry.subqueue is SubQueue.IN_FLIGHT) is (entry.uid in self.flying)

    @invariant()
    def events_are_kept_for_flying_pods_only(self) -> None:
        longest = max((len(seen) for _, seen in self.flying.values()), default=0)
        assert self.queue.events_kept == longest

    def teardown(self) -> None:
        """In the end everybody who is not gated gets a try, without any event."""
        for flying, _ in self.flying.values():
            self.queue.failed(flying, self.now)
        tried = set()
        self.now += LONGEST_WAIT
        while (entry := self.queue.pop(self.now)) is not None:
            tried.add(entry.uid)
        ungated = {name for name, pod in self.there.items() if not pod.spec.scheduling_gates}
        assert tried == ungated


TestQueueing = QueueMachine.TestCase
TestQueueing.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
