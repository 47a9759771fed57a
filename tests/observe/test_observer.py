"""Changes go into the snapshot checked, in order and between decisions."""

from __future__ import annotations

import pytest

from bayplan.client import Change
from bayplan.fit import Decision, Snapshot
from bayplan.fit.hints import ClusterEvent, may_unblock
from bayplan.kube.meta import KubeObject
from bayplan.kube.nodes import Node
from bayplan.kube.pods import Pod
from bayplan.observe import ObjectProblem, Observer
from tests.builders import make_node, make_pod


class ObserverFixture:
    """An observer of an empty snapshot, and all that it published."""

    def __init__(self) -> None:
        self.observer = Observer(Snapshot())
        self.snapshot = self.observer.snapshot
        self.events: list[ClusterEvent] = []
        self.problems: list[ObjectProblem] = []
        self.observer.listen(self.events.append)
        self.observer.invalid.listen(self.problems.append)
        self._known: dict[tuple[type[KubeObject], str], KubeObject] = {}
        self._versions = 0

    def say(self, obj: KubeObject) -> None:
        """Tell of an object, as an informer would."""
        self._versions += 1
        obj.metadata.resource_version = str(self._versions)
        old = self._known.get((type(obj), obj.key))
        self._known[type(obj), obj.key] = obj
        self.observer.handle(Change("added" if old is None else "updated", old=old, new=obj))

    def unsay(self, kind: type[KubeObject], key: str) -> None:
        """Tell that it is gone."""
        old = self._known.pop((kind, key))
        self.observer.handle(Change("deleted", old=old, new=old))

    @property
    def told(self) -> list[tuple[str, str]]:
        return [
            (event.action, (event.after or event.before or Node()).key) for event in self.events
        ]


def test_what_is_told_is_what_the_snapshot_has() -> None:
    it = ObserverFixture()
    it.say(make_node("n1").obj())
    it.say(make_pod("p").cpu("1").obj())
    pod = it.snapshot.get(Pod, "default/p")
    assert isinstance(pod, Pod)
    assert it.snapshot.decide(pod).node == "n1"
    it.unsay(Node, "n1")
    assert it.snapshot.decide(pod).node is None
    assert it.told == [("added", "n1"), ("added", "default/p"), ("deleted", "n1")]


def test_listeners_hear_of_a_change_when_the_snapshot_shows_it() -> None:
    it = ObserverFixture()
    seen: list[object] = []
    it.observer.listen(lambda event: seen.append(it.snapshot.get(event.kind, "n1")))
    it.say(make_node("n1").obj())
    it.say(make_node("n1").labels(a="b").obj())
    it.unsay(Node, "n1")
    assert [isinstance(one, Node) and one.metadata.labels.get("a", "-") for one in seen] == [
        "-",
        "b",
        False,
    ]
    assert it.events[1].before is it.events[0].after


def test_nothing_changes_while_something_is_tried() -> None:
    it = ObserverFixture()
    it.say(make_node("n1").obj())
    with it.snapshot.fork():
        it.say(make_node("n2").obj())
        it.unsay(Node, "n1")
        assert it.snapshot.get(Node, "n1") is not None
        assert it.snapshot.get(Node, "n2") is None
        assert it.told == [("added", "n1")]
    it.observer.apply_deferred()
    assert it.snapshot.get(Node, "n1") is None
    assert it.snapshot.get(Node, "n2") is not None
    assert it.told == [("added", "n1"), ("added", "n2"), ("deleted", "n1")]


def test_what_could_mislead_is_set_aside_and_told_once() -> None:
    it = ObserverFixture()
    it.say(make_node("n1").obj())
    for beat in range(3):  # heartbeats change the version, not the problem
        it.say(make_pod("p").cpu("-1").labels(beat=str(beat)).obj())
    assert it.snapshot.get(Pod, "default/p") is None
    assert [problem.identity for problem in it.problems] == ["Pod default/p"]
    assert "spec.containers[0].resources.requests.cpu" in it.problems[0].text
    it.say(make_pod("p").cpu("many").obj())
    assert len(it.problems) == 2
    it.say(make_pod("p").cpu("1").obj())
    assert it.told == [("added", "n1"), ("added", "default/p")]
    assert len(it.observer.invalid) == 0
    it.say(make_pod("p").cpu("-1").obj())
    assert len(it.problems) == 3


def test_the_last_sound_version_stays_in_use() -> None:
    it = ObserverFixture()
    it.say(make_node("n1").capacity(cpu="2").obj())
    first = it.snapshot.get(Node, "n1")
    it.say(make_node("n1").capacity(cpu="-2").obj())
    it.say(make_node("n1").capacity(cpu="1e99").obj())
    assert it.snapshot.get(Node, "n1") == first
    it.say(make_node("n1").capacity(cpu="3").obj())
    assert [event.action for event in it.events] == ["added", "updated"]
    assert it.events[-1].before == first


def test_what_was_never_sound_goes_without_a_word() -> None:
    it = ObserverFixture()
    it.say(make_node("n1").capacity(cpu="-2").obj())
    it.unsay(Node, "n1")
    assert it.events == []
    assert len(it.observer.invalid) == 0


def test_an_object_that_does_not_fit_its_type_is_set_aside_too() -> None:
    it = ObserverFixture()
    it.say(make_pod("p").obj())
    known = it.snapshot.get(Pod, "default/p")
    for _ in range(2):
        problem = ObjectProblem(Pod, "default/p", "Pod default/p: spec: expected object")
        it.observer.note_undecodable(problem, known)
    assert [problem.text for problem in it.problems] == ["Pod default/p: spec: expected object"]
    assert it.snapshot.get(Pod, "default/p") is known
    it.say(make_pod("p").cpu("1").obj())
    assert [event.action for event in it.events] == ["added", "updated"]
    assert it.events[-1].before is known


def assumed() -> ObserverFixture:
    """A pod that is assumed on a node, and was seen without one."""
    it = ObserverFixture()
    it.say(make_node("n1").capacity(cpu="1").obj())
    it.say(make_node("n2").capacity(cpu="1").obj())
    it.say(make_pod("p").cpu("1").uid("1").obj())
    it.snapshot.assume(make_pod("p").cpu("1").uid("1").obj(), Decision("n1"))
    return it


@pytest.mark.parametrize(
    "seen",
    [
        None,
        make_pod("p").cpu("1").uid("1").node("n2").obj(),
        make_pod("p").cpu("1").uid("1").phase("Failed").obj(),
        make_pod("p").cpu("1").uid("2").obj(),
    ],
)
def test_a_pod_that_is_not_where_it_was_assumed_leaves_that_node(seen: Pod | None) -> None:
    it = assumed()
    if seen is None:
        it.unsay(Pod, "default/p")
    else:
        it.say(seen)
    before = it.events[-1].before
    assert isinstance(before, Pod)
    assert before.spec.node_name == "n1"
    waiting = make_pod("q").cpu("1").obj()
    assert may_unblock(it.snapshot, waiting, {"NodeResourcesFit"}, it.events[-1])


@pytest.mark.parametrize("node", ["", "n2"])
def test_a_pod_that_is_not_where_it_was_nominated_leaves_that_node(node: str) -> None:
    it = ObserverFixture()
    it.say(make_node("n1").capacity(cpu="1").obj())
    it.say(make_pod("p").cpu("1").uid("1").obj())
    it.snapshot.nominate(make_pod("p").cpu("1").uid("1").obj(), "n1")
    waiting = make_pod("q").cpu("1").obj()
    plugins = it.snapshot.decide(waiting).plugins
    if node:
        it.say(make_pod("p").cpu("1").uid("1").node(node).obj())
    else:
        it.unsay(Pod, "default/p")
    assert it.snapshot.decide(waiting).node == "n1"
    assert may_unblock(it.snapshot, waiting, plugins, it.events[-1])


@pytest.mark.parametrize("node", ["", "n1"])
def test_a_pod_that_may_be_where_it_was_assumed_is_told_as_it_was_seen(node: str) -> None:
    it = assumed()
    it.say(make_pod("p").cpu("1").uid("1").node(node).obj())
    before = it.events[-1].before
    assert isinstance(before, Pod)
    assert before.spec.node_name == ""


def test_a_pod_that_says_the_same_again_keeps_its_spec() -> None:
    it = ObserverFixture()
    first, second = make_pod("p").cpu("1").obj(), make_pod("p").cpu("1").node("n1").obj()
    it.say(first)
    it.say(second)
    assert second.spec.containers is first.spec.containers
    assert (first.spec.node_name, second.spec.node_name) == ("", "n1")


def test_a_pod_that_says_something_else_is_checked_whole() -> None:
    it = ObserverFixture()
    it.say(make_pod("p").cpu("1").obj())
    it.say(make_pod("p").cpu("-1").obj())
    it.say(make_pod("p").cpu("-1").node("n1").obj())
    assert [problem.key for problem in it.problems] == ["default/p"]
    assert (Pod, "default/p") in it.observer.invalid
