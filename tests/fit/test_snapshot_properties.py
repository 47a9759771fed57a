"""However a snapshot came to hold its objects, it answers as one that was built of them afresh."""

from __future__ import annotations

import random
from collections.abc import Callable

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan.fit import Assumption, Profile, Refusal, Snapshot
from bayplan.fit.preemption import preempt
from bayplan.kube.meta import KubeObject
from bayplan.kube.pods import Pod
from tests.fit.random_clusters import NODES, random_object, random_pod

pytestmark = pytest.mark.whole


Step = tuple[str, int]
EDITS = ("put", "delete", "observe", "observe_gone")
ASSUMING = ("assume", "place", "forget", "expire")
FORKS = ("begin", "commit", "revert")
STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            ["put"] * 4 + [*EDITS, "assume", *ASSUMING, *FORKS, "ask", "nominate", "clear"]
        ),
        st.integers(0, 2**32),
    ),
    min_size=5,
    max_size=60,
)


def answers(snapshot: Snapshot, pod: Pod) -> object:
    """Everything a snapshot says of a pod."""
    said = snapshot.verdicts(pod)
    if isinstance(said, Refusal):
        return said
    preemption = preempt(snapshot, pod)
    victims = sorted(victim.key for victim in preemption.victims)
    return said, snapshot.decide(pod), preemption.node, victims, preemption.message


def contents(snapshot: Snapshot) -> list[bytes]:
    """All objects, in an order of their own."""
    return sorted(msgspec.json.encode((type(one).__name__, one)) for one in snapshot.objects())


def made(rng: random.Random) -> KubeObject:
    """An object that mostly is the one of its name, and not another."""
    obj = random_object(rng)
    obj.metadata.uid = f"{obj.key}-{rng.randrange(4) // 3}"
    obj.metadata.resource_version = str(rng.randrange(4))
    return obj


def waiting(rng: random.Random) -> Pod:
    """A pod without a node, likewise."""
    pod = random_pod(rng)
    pod.metadata.uid = f"{pod.key}-{rng.randrange(4) // 3}"
    pod.spec.node_name = ""
    return pod


class Driver:
    """A snapshot that is driven step by step, with the tokens of what was assumed."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self.depth = 0
        self.tokens: list[Assumption] = []

    def take(self, step: Step) -> None:
        action, seed = step
        act: Callable[[random.Random], None] = getattr(self, f"do_{action}")
        act(random.Random(seed))

    def do_put(self, rng: random.Random) -> None:
        self.snapshot.put(made(rng))

    def do_observe(self, rng: random.Random) -> None:
        self.snapshot.observe(made(rng))

    def do_delete(self, rng: random.Random) -> None:
        obj = random_object(rng)
        self.snapshot.delete(type(obj), obj.key)

    def do_observe_gone(self, rng: random.Random) -> None:
        obj = random_object(rng)
        self.snapshot.observe_gone(type(obj), obj.key)

    def do_assume(self, rng: random.Random) -> None:
        pod, node = waiting(rng), rng.choice(NODES)
        record = self.snapshot.cluster.pods.by_key.get(pod.key)
        if record is not None and rng.random() < 0.5:
            pod = record.pod
        if record is None or not record.node:
            decision = self.snapshot.decision_on(pod, node)
            self.tokens.append(self.snapshot.assume(pod, decision))

    def do_place(self, rng: random.Random) -> None:
        pod = waiting(rng)
        decision = self.snapshot.decide(pod)
        record = self.snapshot.cluster.pods.by_key.get(pod.key)
        if decision.node is not None and (record is None or not record.node):
            self.tokens.append(self.snapshot.assume(pod, decision))

    def do_forget(self, rng: random.Random) -> None:
        if self.tokens:
            self.snapshot.forget(rng.choice(self.tokens))

    def do_expire(self, rng: random.Random) -> None:
        for token in self.tokens:
            self.snapshot.finish_binding(token, rng.random())
        self.snapshot.expire(0.3)

    def do_nominate(self, rng: random.Random) -> None:
        self.snapshot.nominate(waiting(rng), rng.choice(NODES))

    def do_clear(self, rng: random.Random) -> None:
        self.snapshot.clear_nomination(random_pod(rng))

    def do_ask(self, rng: random.Random) -> None:
        answers(self.snapshot, random_pod(rng))

    def do_begin(self, rng: random.Random) -> None:
        self.snapshot.begin()
        self.depth += 1

    def do_commit(self, rng: random.Random) -> None:
        if self.depth:
            self.snapshot.commit()
            self.depth -= 1

    def do_revert(self, rng: random.Random) -> None:
        if self.depth:
            self.snapshot.revert()
            self.depth -= 1


def probes(seed: int) -> list[Pod]:
    """Pods to ask about that are in no snapshot."""
    rng = random.Random(seed)
    pods = [random_pod(rng) for _ in range(3)]
    for pod in pods:
        pod.metadata.name, pod.spec.node_name = "probe", ""
    return pods


@settings(max_examples=150)
@given(steps=STEPS, seed=st.integers(0, 2**32), upstream=st.booleans())
def test_any_history_answers_as_a_fresh_snapshot(
    steps: list[Step], seed: int, upstream: bool
) -> None:
    profile = Profile.kubernetes(volume_limit_scaling=True) if upstream else Profile()
    driver = Driver(Snapshot(profile=profile))
    for step in steps:
        driver.take(step)
    fresh = Snapshot(driver.snapshot.objects(), profile=profile)
    for pod in probes(seed):
        assert answers(driver.snapshot, pod) == answers(fresh, pod)


@settings(max_examples=75)
@given(before=STEPS, inside=STEPS, seed=st.integers(0, 2**32))
def test_a_reverted_fork_leaves_nothing_behind(
    before: list[Step], inside: list[Step], seed: int
) -> None:
    driver = Driver(Snapshot())
    snapshot = driver.snapshot
    for step in before:
        if step[0] not in FORKS:
            driver.take(step)
    asked = [answers(snapshot, pod) for pod in probes(seed)]
    held, had = set(snapshot.assumptions()), contents(snapshot)
    with snapshot.fork():
        for step in inside:
            if not step[0].startswith("observe"):
                driver.take(step)
    assert [answers(snapshot, pod) for pod in probes(seed)] == asked
    assert contents(snapshot) == had
    assert set(snapshot.assumptions()) == held


@settings(max_examples=150)
@given(steps=STEPS, seed=st.integers(0, 2**32))
def test_what_is_assumed_and_forgotten_never_was(steps: list[Step], seed: int) -> None:
    assuming, without = Driver(Snapshot()), Driver(Snapshot())
    for step in steps:
        assuming.take(step)
        if step[0] not in ASSUMING:
            without.take(step)
    for driver in (assuming, without):
        while driver.depth:
            driver.do_revert(random.Random())
    for token in assuming.snapshot.assumptions():
        assuming.snapshot.forget(token)
    assert assuming.snapshot.assumptions() == []
    assert contents(assuming.snapshot) == contents(without.snapshot)
    for pod in probes(seed):
        assert answers(assuming.snapshot, pod) == answers(without.snapshot, pod)


@settings(max_examples=75)
@given(before=STEPS, inside=STEPS)
def test_what_is_observed_during_a_fork_is_there_after_it(
    before: list[Step], inside: list[Step]
) -> None:
    forked, direct = Driver(Snapshot()), Driver(Snapshot())
    for driver in (forked, direct):
        for step in before:
            if step[0] in EDITS:
                driver.take(step)
    observed = [step for step in inside if step[0].startswith("observe")]
    with forked.snapshot.fork():
        for step in inside:
            forked.take(step)
    for step in observed:
        direct.take(step)
    assert contents(forked.snapshot) == contents(direct.snapshot)
