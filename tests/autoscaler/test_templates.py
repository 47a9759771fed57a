"""What a group's next node is taken to be, and what is expected of it."""

from __future__ import annotations

from datetime import datetime, timedelta

from bayplan.autoscaler.cloudstate.reader import NodeGroupInfo
from bayplan.autoscaler.clusterstate.readiness import NodeReadiness, NodeState, ReadinessCriteria
from bayplan.autoscaler.options import AutoscalerOptions
from bayplan.autoscaler.templates import (
    TEMPLATE_NODE,
    UNKNOWN,
    NodeGroupView,
    TemplateContext,
    TemplateNodeInfoProvider,
)
from bayplan.fit import Snapshot
from bayplan.kube.meta import Condition, KubeObject
from bayplan.kube.nodes import Node
from bayplan.kube.times import timestamp
from bayplan.kube.workloads import DaemonSet
from bayplan.nodegroups import (
    CSI_DRIVERS,
    CloudNodeGroup,
    GroupOptions,
    TemplateNodeInfo,
    template_of,
)
from bayplan.nodegroups.templates import csi_limits
from tests.autoscaler.cluster_views import DISK, NOW
from tests.builders import make_csinode, make_daemon_set, make_node, make_pod

FILES = "files.csi.example.com"
LONG_AGO = NOW - timedelta(hours=1)


def ready_node(name: str = "n", since: datetime = LONG_AGO) -> Node:
    node = make_node(name).uid(name).label("pool", "workers").taint("dedicated").obj()
    moment = timestamp(since)
    node.status.conditions = [Condition(type="Ready", status="True", last_transition_time=moment)]
    return node


def cloud_template(limits: str | None = f"{DISK}=8", **labels: str) -> TemplateNodeInfo:
    """What the cloud says of the next node."""
    node = make_node("said").labels(labels)
    return template_of(
        node.annotation(CSI_DRIVERS, limits).obj() if limits is not None else node.obj()
    )


def asked(template: TemplateNodeInfo | None = None) -> NodeGroupInfo:
    return NodeGroupInfo(CloudNodeGroup("g", 0, 9), 1, (), GroupOptions(), template)


class Case:
    """A group with some nodes."""

    def __init__(self, *objects: KubeObject, drivers: tuple[str, ...] = ()) -> None:
        self.templates = TemplateNodeInfoProvider(AutoscalerOptions(startup_taint=("booting",)))
        self.snapshot = Snapshot(objects)
        self.drivers = drivers
        self.members = [
            (obj.name, NodeState(obj, "g", NodeReadiness.READY, ready_since=LONG_AGO))
            for obj in objects
            if isinstance(obj, Node)
        ]

    def scene(self, *daemon_sets: DaemonSet) -> TemplateContext:
        return TemplateContext(self.snapshot, NOW, daemon_sets, self.drivers)

    def view(
        self, template: TemplateNodeInfo | None = None, *daemon_sets: DaemonSet
    ) -> NodeGroupView:
        return self.templates.view(asked(template), self.members, self.scene(*daemon_sets))

    def readiness_criteria(self, template: TemplateNodeInfo | None = None) -> ReadinessCriteria:
        return self.templates.readiness_criteria(asked(template), self.members, self.scene())


def limits(view: NodeGroupView) -> dict[str, int | None]:
    assert view.template is not None
    return csi_limits(view.template.csinode)


def test_a_node_that_has_been_ready_for_a_while_is_copied() -> None:
    made = Case(ready_node(), make_csinode("n").driver(DISK, 5).obj()).view(cloud_template())
    assert made.template is not None
    assert made.template.node.metadata.labels["pool"] == "workers"
    assert made.template.node.metadata.labels[TEMPLATE_NODE] == "true"
    assert made.template.group == "g"
    assert limits(made) == {DISK: 5}


def test_a_node_that_is_only_just_ready_is_not_copied_yet() -> None:
    case = Case(ready_node(), make_csinode("n").driver(DISK, 9).obj())
    case.members[0][1].ready_since = NOW - timedelta(seconds=59)
    made = case.view(cloud_template(pool="said"))
    assert made.template is not None
    assert made.template.node.metadata.labels["pool"] == "said"
    assert limits(made) == {DISK: 8}


def test_the_youngest_of_several_is_copied() -> None:
    case = Case(ready_node("a"), ready_node("b"))
    case.members[1][1].ready_since = NOW - timedelta(minutes=2)
    made = case.view()
    assert made.template is not None
    assert made.template.node.name == "b"


def test_what_the_last_node_was_like_is_remembered() -> None:
    case = Case(ready_node())
    case.view(cloud_template(pool="said"))
    case.members = []
    made = case.view(cloud_template(pool="said"))
    assert made.template is not None
    assert made.template.node.metadata.labels["pool"] == "workers"
    case.templates.forget_others(())
    made = case.view(cloud_template(pool="said"))
    assert made.template is not None
    assert made.template.node.metadata.labels["pool"] == "said"


def test_a_node_that_is_not_ready_is_better_than_nothing() -> None:
    case = Case(ready_node())
    case.members[0][1].readiness = NodeReadiness.UNREADY
    assert case.view().template is not None
    assert Case().view().template is None


def test_taints_of_a_beginning_are_left_out_and_others_stay() -> None:
    node = ready_node()
    more = make_node("n").taint("booting").taint("node.kubernetes.io/not-ready")
    more.taint("status-taint.cluster-autoscaler.kubernetes.io/x").taint(
        "ToBeDeletedByClusterAutoscaler"
    )
    node.spec.taints = [*node.spec.taints, *more.obj().spec.taints]
    made = Case(node).view()
    assert made.template is not None
    assert [taint.key for taint in made.template.node.spec.taints] == ["dedicated"]


def test_daemons_are_those_of_the_node_and_those_that_would_come() -> None:
    running = make_pod("agent-x", "kube-system").owner("DaemonSet", "agent").node("n").obj()
    pattern = make_pod("pattern").toleration("dedicated", operator="Exists").obj()
    sets = [make_daemon_set(name, pattern, "kube-system").obj() for name in ("agent", "logs")]
    made = Case(ready_node(), running).view(None, *sets)
    assert made.template is not None
    owners = [pod.metadata.controller for pod in made.template.daemons]
    assert [owner.name for owner in owners if owner] == ["agent", "logs"]


def test_a_driver_that_reports_less_than_was_promised_is_believed_at_once() -> None:
    case = Case(ready_node(), make_csinode("n").driver(DISK, 3).obj())
    case.members[0][1].ready_since = NOW
    assert limits(case.view(cloud_template())) == {DISK: 3}
    assert limits(case.view(cloud_template(f"{DISK}=2"))) == {DISK: 2}


def test_zero_is_zero_and_what_cannot_be_read_is_absent_and_said() -> None:
    made = Case().view(cloud_template(f"{DISK}=0,{FILES}=many"))
    assert limits(made) == {DISK: 0}
    assert len(made.problems) == 1
    assert FILES in made.problems[0]


def test_where_nobody_says_anything_the_clusters_drivers_are_hoped_for() -> None:
    case = Case(drivers=(DISK,))
    made = case.view(cloud_template(None))
    assert limits(made) == {DISK: None}
    assert made.problems == (UNKNOWN,)
    promise = case.readiness_criteria(cloud_template(None))
    assert (promise.drivers, promise.optional_drivers) == ({}, frozenset({DISK}))


def test_what_is_declared_is_promised_and_what_all_old_nodes_have() -> None:
    first = make_csinode("a").driver(FILES).driver("odd.csi.example.com", 1).obj()
    second = make_csinode("b").driver(FILES).obj()
    case = Case(ready_node("a"), ready_node("b"), first, second, drivers=("never.example.com",))
    promise = case.readiness_criteria(cloud_template())
    assert promise.drivers == {DISK: True, FILES: False}
    assert not promise.optional_drivers


def test_nodes_that_are_young_promise_nothing() -> None:
    young = ready_node("a", NOW - timedelta(minutes=9))
    case = Case(young, make_csinode("a").driver(FILES, 4).obj())
    assert case.readiness_criteria(cloud_template()).drivers == {DISK: True}
