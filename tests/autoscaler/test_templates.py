"""What a group's next node is taken to be, and what is expected of it."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from bayplan.autoscaler.cloudstate.reader import NodeGroupInfo
from bayplan.autoscaler.clusterstate.readiness import NodeReadiness, NodeState, ReadinessCriteria
from bayplan.autoscaler.options import AutoscalerOptions
from bayplan.autoscaler.scaleup.orchestrator import decide
from bayplan.autoscaler.templates import (
    TEMPLATE_NODE,
    UNKNOWN,
    NodeGroupView,
    TemplateContext,
    TemplateNodeInfoProvider,
)
from bayplan.fit import Snapshot
from bayplan.kube.labels import INSTANCE_TYPE
from bayplan.kube.meta import Condition, KubeObject, LabelSelector
from bayplan.kube.nodes import Node
from bayplan.kube.storage import CSINode
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
from tests.autoscaler.cluster_views import DISK, NOW, FewestNodes, view
from tests.builders import (
    make_capacity,
    make_csidriver,
    make_csinode,
    make_daemon_set,
    make_node,
    make_pod,
    make_pvc,
    make_storage_class,
)

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
        self.now = NOW
        self.members = [
            (obj.name, NodeState(obj, "g", NodeReadiness.READY, ready_since=LONG_AGO))
            for obj in objects
            if isinstance(obj, Node)
        ]

    def scene(self, *daemon_sets: DaemonSet) -> TemplateContext:
        return TemplateContext(
            self.snapshot, self.now, daemon_sets, self.drivers, frozenset(self.drivers)
        )

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
    assert limits(made) == {DISK: 8}


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


def group_of(*reported: int | None, absent: int = 0) -> Case:
    """A group whose nodes report these limits, the youngest last, after some without the driver."""
    names = [f"n{number}" for number in range(absent + len(reported))]
    csinodes = [
        make_csinode(name).driver(DISK, limit).obj()
        for name, limit in zip(names[absent:], reported, strict=True)
    ]
    case = Case(*map(ready_node, names), *csinodes)
    for number, (_, member) in enumerate(case.members):
        member.ready_since = LONG_AGO + timedelta(minutes=number)
    return case


def test_one_node_that_reports_no_slots_does_not_change_the_limit_of_new_nodes() -> None:
    made = group_of(8, 8, 0).view()
    assert limits(made) == {DISK: 8}
    (outlier,) = made.outliers
    assert (outlier.node, outlier.driver, outlier.reported) == ("n2", DISK, "limit 0")


def test_a_declared_limit_stands_against_one_node_that_reports_less() -> None:
    assert limits(group_of(8, 8, 1).view(cloud_template())) == {DISK: 8}
    assert limits(group_of(1).view(cloud_template())) == {DISK: 8}


def test_a_declared_limit_that_all_nodes_contradict_is_corrected_and_reported() -> None:
    made = group_of(3, 3, 2).view(cloud_template())
    assert limits(made) == {DISK: 3}
    assert "declared with limit 8" in made.problems[0]


def test_a_declared_limit_below_what_nodes_report_stands() -> None:
    made = group_of(8, 8).view(cloud_template(f"{DISK}=2"))
    assert (limits(made), made.problems) == ({DISK: 2}, ())


def test_a_computed_limit_gives_way_to_what_most_nodes_report() -> None:
    computed = replace(cloud_template(), estimated=frozenset({DISK}))
    assert limits(group_of(5, 5, 1).view(computed)) == {DISK: 5}
    assert limits(group_of(5).view(computed)) == {DISK: 5}
    assert limits(Case().view(computed)) == {DISK: 8}


def test_a_driver_that_the_youngest_node_has_lost_is_still_expected() -> None:
    case = group_of(8, 8, 8)
    case.snapshot.delete(CSINode, "n2")
    made = case.view()
    assert limits(made) == {DISK: 8}
    assert [(one.node, one.reported) for one in made.outliers] == [("n2", "absent")]


def test_a_driver_that_few_nodes_have_is_not_expected() -> None:
    made = group_of(8, absent=2).view()
    assert limits(made) == {}
    assert not made.outliers


def test_what_the_last_node_reported_expires() -> None:
    case = group_of(0)
    assert limits(case.view(cloud_template(None))) == {DISK: 0}
    case.members = []
    assert limits(case.view(cloud_template(None))) == {DISK: 0}
    assert limits(case.view(cloud_template())) == {DISK: 8}
    case.now += timedelta(hours=1)
    made = case.view(cloud_template(None))
    assert limits(made) == {DISK: None}
    assert made.problems == (UNKNOWN,)


def test_one_tainted_node_does_not_taint_new_nodes() -> None:
    case = Case(ready_node("a"), ready_node("b"), make_node("c").taint("repair").obj())
    case.members[2][1].ready_since = NOW - timedelta(minutes=2)
    made = case.view()
    assert made.template is not None
    assert [taint.key for taint in made.template.node.spec.taints] == ["dedicated"]


def test_limits_of_other_instance_types_do_not_count() -> None:
    nodes = [ready_node(name) for name in ("a", "b", "c")]
    for node, kind in zip(nodes, ("large", "large", "small"), strict=True):
        node.metadata.labels[INSTANCE_TYPE] = kind
    counts = {"a": 24, "b": 24, "c": 8}
    made = Case(*nodes, *(make_csinode(n).driver(DISK, c).obj() for n, c in counts.items())).view()
    assert limits(made) == {DISK: 24}
    assert not made.outliers


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
    assert (promise.drivers, promise.optional_drivers) == (frozenset(), frozenset({DISK}))


def test_what_is_declared_is_promised_and_what_all_old_nodes_have() -> None:
    first = make_csinode("a").driver(FILES).driver("odd.csi.example.com", 1).obj()
    second = make_csinode("b").driver(FILES).obj()
    case = Case(ready_node("a"), ready_node("b"), first, second, drivers=("never.example.com",))
    promise = case.readiness_criteria(cloud_template())
    assert promise.drivers == {DISK, FILES}
    assert promise.optional_drivers == {"odd.csi.example.com"}


def test_nodes_that_are_young_promise_nothing() -> None:
    young = ready_node("a", NOW - timedelta(minutes=9))
    case = Case(young, make_csinode("a").driver(FILES, 4).obj())
    assert case.readiness_criteria(cloud_template()).drivers == {DISK}


def local_storage(capacity: str | None) -> Snapshot:
    """A cluster with storage on nodes themselves, and what new nodes are declared to have."""
    objects: list[KubeObject] = [
        make_csidriver(DISK).storage_capacity().obj(),
        make_storage_class("local", DISK).waits().obj(),
        make_pvc("data").storage_class("local").size("100Gi").obj(),
    ]
    if capacity is not None:
        selector = LabelSelector(match_labels={TEMPLATE_NODE: "true"})
        declared = make_capacity("new", "local").capacity(capacity).topology(selector)
        objects.append(declared.obj())
    return Snapshot(objects)


@pytest.mark.parametrize(("capacity", "nodes"), [(None, 0), ("50Gi", 0), ("500Gi", 1)])
def test_storage_of_one_node_is_added_if_new_nodes_are_declared_to_have_it(
    capacity: str | None, nodes: int
) -> None:
    case = Case()
    case.snapshot = local_storage(capacity)
    pods = [make_pod("p").claim("data").obj()]
    found = decide(view(case.snapshot, pods, case.view(cloud_template())), FewestNodes())
    assert sum(one.nodes for one in found.new_nodes) == nodes
