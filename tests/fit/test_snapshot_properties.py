"""However a snapshot came to hold its objects, it answers as one that was built of them afresh."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan.fit import Profile, Refusal, Snapshot
from bayplan.fit.preemption import preempt
from bayplan.kube.pods import Pod
from tests.fit.worlds import NODES, random_object, random_pod

Step = tuple[str, int]
STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            ["put"] * 6
            + ["delete", "assume", "unassume", "begin", "commit", "revert", "ask"]
            + ["nominate", "clear"]
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


def apply(snapshot: Snapshot, step: Step, depth: int) -> int:
    """Do one step; returns how deep forks nest now."""
    action, seed = step
    rng = random.Random(seed)
    obj = random_object(rng)
    placed = sorted(snapshot.cluster.pods.by_key)
    if action == "put":
        snapshot.put(obj)
    elif action == "delete":
        snapshot.delete(type(obj), obj.key)
    elif action == "assume":
        snapshot.assume(random_pod(rng), rng.choice(NODES))
    elif action == "unassume" and placed:
        snapshot.unassume(snapshot.cluster.pods.by_key[rng.choice(placed)].pod)
    elif action == "nominate":
        snapshot.nominate(random_pod(rng), rng.choice(NODES))
    elif action == "clear":
        snapshot.clear_nomination(random_pod(rng))
    elif action == "ask":
        answers(snapshot, random_pod(rng))
    elif action == "begin":
        snapshot.begin()
        return depth + 1
    elif action in ("commit", "revert") and depth:
        (snapshot.commit if action == "commit" else snapshot.revert)()
        return depth - 1
    return depth


@settings(max_examples=150)
@given(steps=STEPS, probes=st.integers(0, 2**32), upstream=st.booleans())
def test_any_history_answers_as_a_fresh_snapshot(
    steps: list[Step], probes: int, upstream: bool
) -> None:
    profile = Profile.kubernetes(volume_limit_scaling=True) if upstream else Profile()
    snapshot = Snapshot(profile=profile)
    depth = 0
    for step in steps:
        depth = apply(snapshot, step, depth)
    fresh = Snapshot(snapshot.objects(), profile=profile)
    rng = random.Random(probes)
    for _ in range(3):
        pod = random_pod(rng)
        pod.metadata.name, pod.spec.node_name = "probe", ""
        assert answers(snapshot, pod) == answers(fresh, pod)


@settings(max_examples=75)
@given(before=STEPS, inside=STEPS, probes=st.integers(0, 2**32))
def test_a_reverted_fork_leaves_nothing_behind(
    before: list[Step], inside: list[Step], probes: int
) -> None:
    snapshot = Snapshot()
    for step in before:
        if step[0] not in ("begin", "commit", "revert"):
            apply(snapshot, step, 0)
    pods = [random_pod(random.Random(probes + index)) for index in range(3)]
    asked = [answers(snapshot, pod) for pod in pods]
    with snapshot.fork():
        depth = 0
        for step in inside:
            depth = apply(snapshot, step, depth)
        while depth:
            snapshot.revert()
            depth -= 1
    assert [answers(snapshot, pod) for pod in pods] == asked
