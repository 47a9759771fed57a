"""Standing answers, kept up to date through any history, are those of a snapshot built afresh.

The ranks of a fixed pool of signatures are compared, on 30 nodes, with everything that is kept
between questions kept warm; and again with hardly anything allowed to be kept.
"""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan.fit import CacheLimits, Profile, Refusal, Snapshot
from bayplan.fit.evaluation.ranks import Evaluation
from bayplan.kube.pods import Pod
from tests.builders import make_pod
from tests.fit.random_clusters import Dice, random_object, random_pod

pytestmark = pytest.mark.whole


SMALL = CacheLimits(
    signatures=8,
    evaluation_bytes=32 * 40 * 12,
    changes=24,
    counters=6,
    idle_terms=2,
    node_sets=5,
    requirements=3,
    claims=3,
    storage_classes=1,
)
PROBES = 10
PLAIN = 6
STEPS = 48
CHECKED_EVERY = 8
ACTIONS = ["put"] * 8 + ["delete", "assume", "assume", "forget", "begin", "commit", "revert"]


def make_dice(seed: int, *, calm: bool = False) -> Dice:
    """Randomness for a cluster of 30 nodes."""
    return Dice(seed, nodes=30, pods=40, volumes=12, calm=calm)


def make_pool(dice: Dice) -> list[Pod]:
    """The signatures that are asked about again and again."""
    pool = []
    for index in range(PROBES):
        pod = random_pod(dice)
        pod.metadata.name, pod.spec.node_name = f"probe{index}", ""
        pool.append(pod)
    for index in range(PLAIN):
        plain = make_pod(f"plain{index}", "quiet").cpu(dice.choice(["100m", "1", "3"]))
        pool.append(plain.memory("64Mi").obj())
    return pool


def ranks(snapshot: Snapshot, pod: Pod) -> object:
    """The rank of every node, or why none was looked at."""
    evaluation = snapshot.evaluation(pod)
    if isinstance(evaluation, Refusal):
        return evaluation
    evaluation.refresh()
    slots = snapshot.cluster.slots.by_name
    return {name: int(evaluation.ranks[slot]) for name, slot in slots.items()}


def columns(snapshot: Snapshot) -> object:
    """What is counted on every node."""
    kept, scored = snapshot.cluster.resources, snapshot.cluster.resources.scored
    return {
        name: (
            kept.free[slot, :4].tolist(),
            scored.left[slot].tolist(),
            scored.used[slot].tolist(),
            int(scored.unevenness[slot]),
        )
        for name, slot in snapshot.cluster.slots.by_name.items()
    }


def assume(snapshot: Snapshot, pod: Pod, node: str) -> None:
    """Take a pod as placed on a node, unless it is on one."""
    record = snapshot.cluster.pods.by_key.get(pod.key)
    if record is None or not record.node:
        snapshot.assume(pod, snapshot.decision_on(pod, node))


def act(snapshot: Snapshot, dice: Dice, depth: int) -> int:
    """Do something; returns how deep forks nest now."""
    action = dice.choice(ACTIONS)
    obj = random_object(dice)
    assumed = snapshot.assumptions()
    if action == "put":
        snapshot.put(obj)
    elif action == "delete":
        snapshot.delete(type(obj), obj.key)
    elif action == "assume":
        assume(snapshot, random_pod(dice), dice.choice(dice.nodes))
    elif action == "forget" and assumed:
        snapshot.forget(dice.choice(assumed))
    elif action == "begin":
        return snapshot.begin()
    elif action in ("commit", "revert") and depth:
        (snapshot.commit if action == "commit" else snapshot.revert)()
        return depth - 1
    return depth


def in_part(snapshot: Snapshot, pool: list[Pod]) -> tuple[int, int]:
    """How often answers that stand now were refreshed, and ranked, in part."""
    asked = [snapshot.evaluation(pod) for pod in pool]
    standing = {id(one): one for one in asked if isinstance(one, Evaluation)}.values()
    return sum(e.partial_refreshes for e in standing), sum(e.partial_rankings for e in standing)


def live(dice: Dice, limits: CacheLimits, profile: Profile) -> tuple[int, int]:
    """Live through a random history and compare; returns how often answers were redone in part."""
    snapshot = Snapshot(profile=profile, limits=limits)
    for _ in range(60):
        snapshot.put(random_object(dice))
    pool, depth, most = make_pool(dice), 0, (0, 0)
    for step in range(1, STEPS + 1):
        depth = act(snapshot, dice, depth)
        for pod in dice.sample(pool, 3):
            ranks(snapshot, pod)
        if step % CHECKED_EVERY == 0:
            most = max(most, in_part(snapshot, pool))
            fresh = Snapshot(snapshot.objects(), profile=profile)
            assert columns(snapshot) == columns(fresh)
            for pod in pool:
                assert ranks(snapshot, pod) == ranks(fresh, pod), pod.metadata.name
    return most


@settings(max_examples=40)
@given(seed=st.integers(0, 2**32), calm=st.booleans(), small=st.booleans(), upstream=st.booleans())
def test_ranks_are_those_of_a_fresh_snapshot(
    seed: int, calm: bool, small: bool, upstream: bool
) -> None:
    profile = Profile.kubernetes(volume_limit_scaling=True) if upstream else Profile()
    live(make_dice(seed, calm=calm), SMALL if small else CacheLimits(), profile)


def test_answers_that_stand_are_brought_up_to_date_in_part() -> None:
    for seed in range(3):
        refreshed, _ = live(make_dice(seed), CacheLimits(), Profile())
        assert refreshed > 5


def test_in_a_calm_world_they_are_ranked_in_part_too() -> None:
    for seed in range(3):
        refreshed, ranked = live(make_dice(seed, calm=True), CacheLimits(), Profile())
        assert refreshed > 5
        assert ranked > 5
