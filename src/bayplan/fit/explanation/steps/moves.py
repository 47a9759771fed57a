"""A pod in the way: move it to a node where it fits, or stop it where nothing else helps."""

from __future__ import annotations

from collections.abc import Iterable

from bayplan.fit.explanation.fix import FixKind, Step
from bayplan.fit.explanation.trial import Trial
from bayplan.fit.needs.claims import READ_WRITE_ONCE_POD
from bayplan.fit.state.pods import placed_on
from bayplan.kube.daemons import belongs_to_node
from bayplan.kube.pods import Pod

MOST_TRIED = 12
"""Pods of one node that are tried, the least important first."""


def move_a_pod(trial: Trial) -> Iterable[Step]:
    """The first pod that can go elsewhere and whose leaving makes room."""
    for pod in _movable(trial)[:MOST_TRIED]:
        target = _target(trial, pod)
        if target:
            raised = trial.snapshot.priority(pod) > trial.snapshot.priority(trial.pod)
            yield Step(
                FixKind.MOVE_POD,
                f"move pod {pod.key} from node {trial.name} to node {target}",
                4.0 if raised else 3.0,
                trial.pod,
                (placed_on(pod, target),),
            )
            return


def stop_claim_user(trial: Trial) -> Iterable[Step]:
    """Stop the pods that have a claim for themselves which this pod wants."""
    users = users_of_exclusive_claims(trial)
    if users:
        said = ", ".join(f"{user} (it has claim {key} for itself)" for user, key in users.items())
        deletes = tuple((Pod, user) for user in users)
        cost = 4.0 * len(users)
        yield Step(FixKind.STOP_POD, f"stop pod {said}", cost, trial.pod, deletes=deletes)


def users_of_exclusive_claims(trial: Trial) -> dict[str, str]:
    """Other pods, by key, with the claim that each has for itself and this pod wants."""
    cluster = trial.snapshot.cluster
    users: dict[str, str] = {}
    for volume in trial.pod.spec.volumes:
        key, claim = cluster.storage.claim_of(trial.pod, volume)
        if claim is not None and READ_WRITE_ONCE_POD in claim.spec.access_modes:
            users |= {
                user: key
                for user in sorted(cluster.pods.by_claim.of(key))
                if user != trial.pod.key and cluster.pods.by_key[user].slot >= 0
            }
    return users


def _movable(trial: Trial) -> list[Pod]:
    snapshot = trial.snapshot
    pods = [
        pod
        for pod in snapshot.pods_on(trial.name)
        if not (belongs_to_node(pod) or pod.is_terminating or pod.key == trial.pod.key)
    ]
    return sorted(pods, key=lambda pod: (snapshot.priority(pod), pod.key))


def _target(trial: Trial, pod: Pod) -> str | None:
    """Where a pod would go if the waiting pod took its place; None if that does not work."""
    snapshot, unplaced = trial.snapshot, placed_on(pod, "")
    with snapshot.fork():
        snapshot.put(unplaced)
        if snapshot.refusal(trial.pod, trial.name) is not None:
            return None
        snapshot.assume(trial.pod, snapshot.decision_on(trial.pod, trial.name))
        target = snapshot.decide(unplaced).node
    return target if target != trial.name else None
