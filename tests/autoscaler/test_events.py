"""What people and programs are told: events, and the status as Cluster Autoscaler writes it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import yaml

from bayplan.autoscaler import events
from bayplan.autoscaler.cloudstate.backoff import NodeGroupBackoff
from bayplan.autoscaler.clusterstate.registry import GroupState
from bayplan.autoscaler.events import AGAIN, AutoscalerEvents
from bayplan.autoscaler.options import AutoscalerOptions
from bayplan.autoscaler.plan import NoScaleUpInfo, ScaleUp
from bayplan.autoscaler.status.configmap import (
    ClusterStatus,
    NodeGroupStatus,
    StatusWriter,
    same_but_for_time,
)
from bayplan.client import Untyped
from bayplan.client.events import NullEventRecorder
from bayplan.fit.plugins.plugin import Cause
from bayplan.kube.events import EventType
from bayplan.kube.gates import FeatureGates
from bayplan.kube.meta import KubeObject
from bayplan.nodegroups import CloudNodeGroup
from tests.autoscaler.cluster_views import NOW
from tests.builders import make_pod
from tests.embedded.cloud.clouds import ManualClock

OPTIONS = AutoscalerOptions()
GROUP = CloudNodeGroup("workers", 1, 9)


class RecordedEvents(NullEventRecorder):
    """Keeps the events."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def record(
        self,
        regarding: KubeObject | Untyped,
        event_type: EventType,
        reason: str,
        *,
        action: str,
        note: str,
    ) -> None:
        self.texts.append(note)


def left(**by_group: str) -> NoScaleUpInfo:
    reasons = {name: (reason,) for name, reason in by_group.items()}
    return NoScaleUpInfo("default/p", Cause.RESOURCES, reasons)


def test_a_purchase_is_told_as_cluster_autoscaler_tells_it() -> None:
    bought = [ScaleUp("a", 1, 3, 10), ScaleUp("b", 0, 1, 2)]
    expected = "pod triggered scale-up: [{a 1->3 (max: 10)} {b 0->1 (max: 2)}]"
    assert events.triggered(bought).text == expected


def test_every_reason_is_counted_and_names_its_groups() -> None:
    short = left(a="Insufficient cpu", b="max node group size reached", c="Insufficient cpu")
    expected = (
        "pod didn't trigger scale-up: 2 Insufficient cpu (a, c), 1 max node group size reached (b)"
    )
    assert events.not_triggered(short).text == expected
    nobody = "pod didn't trigger scale-up: no node groups"
    assert events.not_triggered(left()).text == nobody
    many = left(**{f"g{number}": "Insufficient cpu" for number in range(8)})
    assert events.not_triggered(many).text.endswith(
        "8 Insufficient cpu (g0, g1, g2, g3, g4 and 3 more)"
    )


def test_the_same_is_told_again_only_after_a_while_and_news_at_once() -> None:
    notes, clock, pod = RecordedEvents(), ManualClock(), make_pod("p").uid("u").obj()
    recorder = AutoscalerEvents(notes, OPTIONS, clock)
    for _ in range(3):
        recorder.about(pod, events.not_triggered(left(a="x")))
    assert len(notes.texts) == 1
    recorder.about(pod, events.not_triggered(left(a="y")))
    assert len(notes.texts) == 2
    clock.moment += timedelta(seconds=AGAIN)
    recorder.about(pod, events.not_triggered(left(a="y")))
    assert len(notes.texts) == 3


def written_status(writer: StatusWriter, minutes: float = 0, **fields: Any) -> dict[str, Any]:
    status = ClusterStatus(groups=(NodeGroupStatus(GROUP, **fields),))
    read: dict[str, Any] = yaml.safe_load(
        writer.build(status, NOW + timedelta(minutes=minutes)).data()["status"]
    )
    return read


def test_the_status_has_cluster_autoscalers_fields() -> None:
    state = GroupState(
        target=5, ready=2, not_started=("a",), unready=("b",), missing_drivers=("c",)
    )
    read = written_status(StatusWriter(FeatureGates()), state=state, in_progress=True, candidates=2)
    assert read["autoscalerStatus"] == "Running"
    assert read["clusterWide"]["scaleUp"]["status"] == "InProgress"
    (group,) = read["nodeGroups"]
    assert group["health"]["nodeCounts"] == {
        "registered": {
            "total": 5,
            "ready": 2,
            "notStarted": 1,
            "unready": {"total": 2, "resourceUnready": 1},
        },
        "longUnregistered": 0,
        "unregistered": 0,
    }
    sizes = ("cloudProviderTarget", "minSize", "maxSize")
    assert [group["health"][name] for name in sizes] == [5, 1, 9]
    assert (group["scaleDown"]["status"], group["scaleDown"]["candidates"]) == (
        "CandidatesPresent",
        2,
    )


def test_the_status_counts_nodes_that_are_being_deleted() -> None:
    read = written_status(StatusWriter(FeatureGates()), state=GroupState(ready=2), being_deleted=1)
    for place in (read["clusterWide"], read["nodeGroups"][0]):
        assert place["health"]["nodeCounts"]["registered"]["beingDeleted"] == 1


def test_times_of_groups_that_are_gone_are_forgotten() -> None:
    writer = StatusWriter(FeatureGates())
    written_status(writer, state=GroupState())
    writer.build(ClusterStatus(), NOW + timedelta(minutes=1))
    again = written_status(writer, 2, state=GroupState())["nodeGroups"][0]
    assert again["health"]["lastTransitionTime"] == "2026-01-01T00:02:00Z"


def test_a_group_that_rests_says_why_and_since_when() -> None:
    writer = StatusWriter(FeatureGates())
    written_status(writer, state=GroupState())
    backoff = NodeGroupBackoff(OPTIONS).back_off("workers", NOW, "STOCK", "none left")
    for minutes in (5, 6):
        read = written_status(
            writer, minutes, state=GroupState(), backoff=backoff, problems=("a limit",)
        )
    up = read["nodeGroups"][0]["scaleUp"]
    assert (up["status"], up["backoffInfo"]) == (
        "Backoff",
        {"errorCode": "STOCK", "errorMessage": "none left"},
    )
    assert (up["lastTransitionTime"], up["lastProbeTime"]) == (
        "2026-01-01T00:05:00Z",
        "2026-01-01T00:06:00Z",
    )
    assert read["nodeGroups"][0]["problems"] == ["a limit"]


def test_a_status_that_only_the_time_changes_is_the_same() -> None:
    writer = StatusWriter(FeatureGates())
    one, other = (writer.build(ClusterStatus(), NOW + timedelta(minutes=m)) for m in (0, 1))
    needed = writer.build(ClusterStatus(needed=True), NOW)
    assert same_but_for_time(one, other)
    assert not same_but_for_time(one, needed)
