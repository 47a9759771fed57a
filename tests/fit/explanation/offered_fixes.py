"""Fixes on offer for a pod in a small cluster, each applied to see that it holds."""

from __future__ import annotations

from collections.abc import Sequence

from bayplan.fit import Profile, Snapshot
from bayplan.fit.explanation import Fix, FixKind, explain
from bayplan.kube.meta import KubeObject
from tests.builders import (
    NodeBuilder,
    PodBuilder,
    make_node,
)

EBS = "ebs.csi.aws.com"
HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"


def node(name: str, cpu: str = "4", pods: str = "10") -> NodeBuilder:
    return make_node(name).capacity(cpu=cpu, memory="8Gi", pods=pods)


def fixes(
    objects: Sequence[KubeObject], pod: PodBuilder, profile: Profile | None = None
) -> list[Fix]:
    """The fixes on offer, each applied to a fresh snapshot to see that it holds."""
    found = explain(Snapshot(objects, profile=profile), pod.obj())
    assert not found.fits
    for fix in found.fixes:
        fresh = Snapshot(objects, profile=profile)
        assert fresh.decide(fix.apply(fresh)).node == fix.node
    assert [fix.cost for fix in found.fixes] == sorted(fix.cost for fix in found.fixes)
    return list(found.fixes)


def one(found: list[Fix], *kinds: FixKind) -> Fix:
    """The first fix made of steps of these kinds."""
    match = [fix for fix in found if fix.kinds == kinds]
    assert match, [fix.summary for fix in found]
    return match[0]
