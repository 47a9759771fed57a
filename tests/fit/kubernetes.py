"""Snapshots by kube-scheduler's own rules, for corners that its recorded decisions do not reach."""

from __future__ import annotations

from bayplan.fit import Profile, Snapshot
from bayplan.fit.evaluation.verdicts import Verdicts
from bayplan.kube.meta import KubeObject
from bayplan.kube.nodes import Node
from bayplan.kube.pods import Pod
from tests.builders import (
    make_node,
)


def node(name: str = "n1") -> Node:
    return make_node(name).capacity(cpu="4", memory="8Gi", pods=10).zone("a").obj()


def kubernetes(*objects: KubeObject) -> Snapshot:
    return Snapshot(objects, profile=Profile.kubernetes())


def asked(snapshot: Snapshot, pod: Pod) -> Verdicts:
    found = snapshot.verdicts(pod)
    assert isinstance(found, Verdicts)
    return found


def reasons(snapshot: Snapshot, pod: Pod) -> dict[str, tuple[str, ...]]:
    refusals = asked(snapshot, pod).refusals
    return {name: refusal.reasons for name, refusal in refusals.items()}
