"""Pods that are alike are judged once, unless an event tells them apart."""

from __future__ import annotations

from bayplan.fit import Snapshot
from bayplan.fit.hints import ClusterEvent
from bayplan.scheduler.queueing_hints import SnapshotHints
from tests.builders import make_pod

LIMITS, RESTRICTIONS = frozenset({"NodeVolumeLimits"}), frozenset({"VolumeRestrictions"})


def test_a_pod_that_comes_with_a_claim_tells_those_apart_that_share_it() -> None:
    judge, user = SnapshotHints(Snapshot()), make_pod("u").claim("c").node("n1").obj()
    assert judge.sets_apart(LIMITS, ClusterEvent.of(None, user)) == ["default/c"]
    assert judge.sets_apart(RESTRICTIONS, ClusterEvent.of(user, None)) == ["default/c"]
    assert judge.sets_apart(RESTRICTIONS, ClusterEvent.of(None, user)) == []
    assert judge.sets_apart(LIMITS, ClusterEvent.of(user, None)) == []
