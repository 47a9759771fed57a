"""A pod in the way: move it to a node where it fits, or stop it where nothing else helps."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from bayplan.fit.explanation.fix import FixKind, Step
from bayplan.fit.explanation.neighbours import Blocker, blockers, counted_in_domain, failing_spread
from bayplan.fit.explanation.trial import Trial
from bayplan.fit.plugins.node_resources_fit.filter import NodeResourcesFit
from bayplan.fit.requirements.claims import READ_WRITE_ONCE_POD
from bayplan.fit.state.pods import PodRecord, placed_on, placed_pod
from bayplan.kube.daemons import belongs_to_node
from bayplan.kube.pods import Pod

MOST_TRIED = 24
"""Pods of one node that are tried, the least important first."""


def move_a_pod(trial: Trial) -> Iterable[Step]:
    """The first pod of the node that can go elsewhere and whose leaving makes room."""
    records = trial.snapshot.cluster.pods.by_node.get(trial.name, {}).values()
    return _move_one_of(trial, [placed_pod(one) for one in records if _may_help(trial, one)])


def move_counted(trial: Trial) -> Iterable[Step]:
    """The first pod that makes the node's domain too full and can go to another."""
    for spread in failing_spread(trial)[:1]:
        yield from _move_one_of(trial, counted_in_domain(trial, spread))


def move_blocker(trial: Trial) -> Iterable[Step]:
    """The one pod that keeps this one off, to a node where neither minds the other."""
    return _move_one_of(trial, [placed_pod(one.record) for one in _the_one_blocker(trial)])


def stop_blocker(trial: Trial) -> Iterable[Step]:
    """Delete the one pod that keeps this one off."""
    for blocker in _the_one_blocker(trial):
        pod = blocker.record.pod
        whose = "this pod keeps away from it" if blocker.own_rule else "it keeps this pod away"
        text = f"delete pod {pod.key} ({whose} over {blocker.topology_key})"
        cost = 5.5 if _is_above(trial, pod) else 4.5
        yield Step(FixKind.STOP_POD, text, cost, trial.pod, deletes=((Pod, pod.key),))


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


def _may_help(trial: Trial, record: PodRecord) -> bool:
    """Whether a pod's leaving can make a difference, and enough of one."""
    refusing = trial.refusing
    if isinstance(refusing, NodeResourcesFit):
        takes = record.shape.requests
        short = refusing.shortages(trial.slot)
        return all(takes.get(name, 0) >= wanted - free for name, (wanted, free) in short.items())
    return refusing is None or refusing.heeds(record)


def _the_one_blocker(trial: Trial) -> Sequence[Blocker]:
    """The pod that keeps the pod off, if it is one, and if it can be asked to leave."""
    found = blockers(trial)
    return found if len(found) == 1 and _may_move(trial, found[0].record.pod) else ()


def _move_one_of(trial: Trial, pods: Sequence[Pod]) -> Iterable[Step]:
    movable = [pod for pod in pods if _may_move(trial, pod)]
    movable.sort(key=lambda pod: (trial.snapshot.priority(pod), pod.key))
    for pod in movable[:MOST_TRIED]:
        target = _target(trial, pod)
        if target:
            text = f"move pod {pod.key} from node {pod.spec.node_name} to node {target}"
            cost = 4.0 if _is_above(trial, pod) else 3.0
            yield Step(FixKind.MOVE_POD, text, cost, trial.pod, (placed_on(pod, target),))
            return


def _may_move(trial: Trial, pod: Pod) -> bool:
    return not (belongs_to_node(pod) or pod.is_terminating or pod.key == trial.pod.key)


def _is_above(trial: Trial, pod: Pod) -> bool:
    return trial.snapshot.priority(pod) > trial.snapshot.priority(trial.pod)


def _target(trial: Trial, pod: Pod) -> str | None:
    """Where a pod would go if the waiting pod took its place; None if that does not work."""
    snapshot, unplaced = trial.snapshot, placed_on(pod, "")
    with snapshot.fork():
        snapshot.put(unplaced)
        if snapshot.refusal(trial.pod, trial.name) is not None:
            return None
        snapshot.assume(trial.pod, snapshot.decision_on(trial.pod, trial.name))
        target = snapshot.decide(unplaced).node
    return target if target != pod.spec.node_name else None
