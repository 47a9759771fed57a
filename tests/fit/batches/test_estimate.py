"""New nodes for waiting pods: how many, and for whom."""

from __future__ import annotations

import pytest

from bayplan.fit import Profile, Snapshot
from bayplan.fit.batches import (
    Estimate,
    NodeTemplate,
    daemons_for,
    estimate,
    fill,
    group_pods,
    options,
)
from bayplan.fit.plugins.registry import FILTERS
from bayplan.fit.profile import PluginSet
from bayplan.kube.gates import FeatureGates
from bayplan.kube.labels import HOSTNAME, ZONE
from bayplan.kube.meta import KubeObject, Quantity
from bayplan.kube.nodes import Node
from bayplan.kube.pods import Pod
from bayplan.kube.storage import CSINode
from tests.builders import (
    PodBuilder,
    make_csinode,
    make_daemon_set,
    make_node,
    make_pod,
    make_pv,
    make_pvc,
    make_storage_class,
    selector,
)

EBS = "ebs.csi.aws.com"
CLASS = make_storage_class("ebs", EBS).waits().obj()


def sized(name: str = "template") -> Node:
    node = make_node(name).capacity(cpu="8", memory="32Gi", pods=110)
    return node.zone("a").label(HOSTNAME, name).obj()


def with_volumes(limit: int | None) -> NodeTemplate:
    return NodeTemplate(sized(), make_csinode("template").driver(EBS, limit).obj())


def replicas(count: int, cpu: str = "100m", name: str = "p") -> list[PodBuilder]:
    return [make_pod(f"{name}-{at}").cpu(cpu).labels(app=name) for at in range(count)]


def asked(
    template: NodeTemplate,
    pods: list[PodBuilder],
    *objects: KubeObject,
    profile: Profile | None = None,
    most: int = 1000,
) -> Estimate:
    snapshot = Snapshot(objects, profile=profile)
    return estimate(snapshot, template, group_pods(snapshot, [p.obj() for p in pods]), most)


def claimed(pods: list[PodBuilder]) -> list[KubeObject]:
    """A claim for each pod that waits for it."""
    made: list[KubeObject] = []
    for pod in pods:
        name = f"data-{pod.obj().name}"
        pod.claim(name)
        made.append(make_pvc(name).storage_class("ebs").size("1Gi").obj())
    return made


def test_twenty_pods_with_a_volume_each_need_three_nodes_of_eight_places() -> None:
    pods = replicas(20)
    found = asked(with_volumes(8), pods, CLASS, *claimed(pods))
    assert (found.nodes, found.pods) == (3, 20)
    assert sorted(map(len, found.by_node())) == [4, 8, 8]


def test_without_the_gate_the_limits_of_new_nodes_do_not_count() -> None:
    pods = replicas(20)
    off = Profile(gates=FeatureGates({"VolumeLimitScaling": False}))
    found = asked(with_volumes(8), pods, CLASS, *claimed(pods), profile=off)
    assert (found.nodes, found.pods) == (1, 20)


def test_zero_places_help_nobody_and_no_limit_helps_all() -> None:
    pods = replicas(3)
    claims = claimed(pods)
    assert asked(with_volumes(0), pods, CLASS, *claims).pods == 0
    assert asked(with_volumes(None), pods, CLASS, *claims).nodes == 1


def test_a_template_without_the_driver_helps_only_pods_without_volumes() -> None:
    pods, plain = replicas(3), replicas(2, name="plain")
    known = make_csinode("elsewhere").driver(EBS, 8).obj()
    found = asked(NodeTemplate(sized()), pods + plain, CLASS, known, *claimed(pods))
    assert found.helped == (0, 2)


def test_limits_that_nodes_publish_in_allocatable_count() -> None:
    pods = replicas(4)
    node = make_node("template").capacity(
        {"cpu": "8", "pods": 110, "attachable-volumes-csi-ebs.csi.aws.com": 2}
    )
    template = NodeTemplate(node.obj(), make_csinode("template").driver(EBS).obj())
    assert asked(template, pods, CLASS, *claimed(pods)).nodes == 2


def test_a_shared_volume_takes_one_place_on_each_node() -> None:
    pods = [pod.claim("common") for pod in replicas(30, cpu="1")]
    volume = make_pv("pv").csi(EBS, "vol").storage_class("ebs").bound_to("common").obj()
    claim = make_pvc("common").storage_class("ebs").volume("pv").obj()
    found = asked(with_volumes(1), pods, CLASS, volume, claim)
    assert (found.nodes, found.pods) == (4, 30)


def test_a_shared_volume_leaves_less_room_for_those_of_their_own() -> None:
    pods = [pod.claim("common") for pod in replicas(6)]
    volume = make_pv("pv").csi(EBS, "vol").storage_class("ebs").bound_to("common").obj()
    claim = make_pvc("common").storage_class("ebs").volume("pv").obj()
    found = asked(with_volumes(3), pods, CLASS, volume, claim, *claimed(pods))
    assert [len(pods) for pods in found.by_node()] == [2, 2, 2]


def test_in_tree_volumes_count_for_their_driver() -> None:
    pods = [pod.ebs(f"vol-{at}") for at, pod in enumerate(replicas(6))]
    assert asked(with_volumes(2), pods).nodes == 3


def test_ephemeral_volumes_of_daemons_take_places() -> None:
    pods = replicas(4)
    daemon = make_pod("agent").ephemeral("scratch", "ebs").owner("DaemonSet", "agent").obj()
    template = NodeTemplate(sized(), make_csinode("template").driver(EBS, 3).obj(), (daemon,))
    assert asked(template, pods, CLASS, *claimed(pods)).nodes == 2


def test_daemons_take_resources_and_ports() -> None:
    daemon = make_pod("agent").cpu("2").host_port(80).owner("DaemonSet", "agent").obj()
    template = NodeTemplate(sized(), daemons=(daemon,))
    ported = [pod.host_port(80) for pod in replicas(2, name="web")]
    found = asked(template, replicas(12, cpu="1") + ported)
    assert (found.nodes, found.helped) == (2, (12, 0))


def test_pods_that_only_a_daemon_tells_apart_are_helped_if_it_lets_them() -> None:
    keeper = make_pod("keeper").anti_affinity(HOSTNAME, selector(app="db")).obj()
    template = NodeTemplate(sized(), daemons=(keeper,))
    pods = [one.labels(app=app) for one, app in zip(replicas(3), ("db", "web", "db"), strict=True)]
    snapshot = Snapshot()
    groups = group_pods(snapshot, [pod.obj() for pod in pods])
    assert [len(group) for group in groups] == [3]
    found = estimate(snapshot, template, groups, 9)
    assert [pod.name for _, pod in found.placements()] == [pods[1].obj().name]


@pytest.mark.parametrize("left_out", ["NodeVolumeLimits", "NodeResourcesFit"])
def test_pods_are_helped_by_nodes_that_their_scheduler_does_not_look_at(left_out: str) -> None:
    plugins = PluginSet(filters=FILTERS - {left_out})
    pods = replicas(3, cpu="100" if left_out == "NodeResourcesFit" else "1")
    snapshot = Snapshot([CLASS, *claimed(pods)], profile=Profile(plugins=plugins))
    limit = 0 if left_out == "NodeVolumeLimits" else 9
    groups = group_pods(snapshot, [pod.obj() for pod in pods])
    assert estimate(snapshot, with_volumes(limit), groups, 9).pods == 3


def test_extended_resources_and_the_number_of_pods_are_counted() -> None:
    gpu: dict[str, Quantity] = {"cpu": "8", "pods": 3, "example.com/gpu": 2}
    node = make_node("template").capacity(gpu).obj()
    with_gpu = [pod.request("example.com/gpu", 1) for pod in replicas(5, name="gpu")]
    found = asked(NodeTemplate(node), with_gpu + replicas(4))
    assert (found.nodes, found.pods) == (3, 9)


def test_pods_with_a_host_port_go_one_to_a_node_and_others_beside_them() -> None:
    ported = [pod.host_port(80) for pod in replicas(3, name="web")]
    found = asked(NodeTemplate(sized()), ported + replicas(20))
    assert (found.nodes, found.pods) == (3, 23)


def test_pods_that_want_to_be_apart_get_a_host_each() -> None:
    apart = [pod.anti_affinity(HOSTNAME, selector(app="p")) for pod in replicas(5)]
    found = asked(NodeTemplate(sized()), apart)
    assert (found.nodes, found.pods) == (5, 5)


def test_spreading_over_zones_bounds_what_one_zone_can_help() -> None:
    elsewhere = make_node("b1").capacity(cpu="1", pods=0).zone("b").obj()
    spread = [pod.spread(ZONE, max_skew=2) for pod in replicas(10)]
    found = asked(NodeTemplate(sized()), spread, elsewhere)
    assert (found.nodes, found.pods) == (1, 2)


def test_pods_that_want_to_be_near_others_are_helped_once_those_are() -> None:
    near = [pod.affinity(ZONE, selector(app="db")) for pod in replicas(2, cpu="4", name="web")]
    found = asked(NodeTemplate(sized()), near + replicas(2, name="db"))
    assert (found.nodes, found.pods) == (2, 4)


def test_two_pods_of_an_exclusive_claim_are_not_both_helped() -> None:
    pods = [pod.claim("mine") for pod in replicas(2)]
    volume = make_pv("pv").csi(EBS, "vol").storage_class("ebs").bound_to("mine").obj()
    claim = make_pvc("mine").storage_class("ebs").volume("pv").access("ReadWriteOncePod").obj()
    assert asked(with_volumes(8), pods, CLASS, volume, claim).pods == 1


def test_pods_of_one_unbound_claim_go_to_one_node() -> None:
    pods = [pod.claim("common") for pod in replicas(2, cpu="5")]
    claim = make_pvc("common").storage_class("ebs").size("1Gi").obj()
    found = asked(with_volumes(8), pods, CLASS, claim)
    assert (found.nodes, found.pods) == (1, 1)


def test_no_more_nodes_than_allowed_and_the_rest_is_not_helped() -> None:
    found = asked(NodeTemplate(sized()), replicas(30, cpu="1"), most=2)
    assert (found.nodes, found.pods) == (2, 16)


def test_no_nodes_for_pods_that_no_node_could_take() -> None:
    tainted = make_node("template").capacity(cpu="8", pods=110).taint("dedicated").obj()
    assert asked(NodeTemplate(tainted), replicas(3)).nodes == 0
    assert asked(NodeTemplate(sized()), [pod.claim("gone") for pod in replicas(2)]).nodes == 0


def test_replicas_of_a_stateful_set_are_one_group() -> None:
    pods = replicas(4)
    snapshot = Snapshot([CLASS, *claimed(pods)])
    assert [len(group) for group in group_pods(snapshot, [p.obj() for p in pods])] == [4]


def test_a_template_after_a_node_has_its_drivers_and_daemons_and_not_its_troubles() -> None:
    node = make_node("n1").capacity(cpu="8", pods=110).label(HOSTNAME, "n1").label("own", "n1")
    node.taint("node.kubernetes.io/not-ready").taint("dedicated", "db").unschedulable()
    daemon = make_pod("agent").node("n1").owner("DaemonSet", "agent").obj()
    other = make_pod("other").node("n1").obj()
    csinode = make_csinode("n1").driver(EBS, 8).obj()
    template = NodeTemplate.from_node(Snapshot([node.obj(), csinode, daemon, other]), "n1")
    made = list(template.objects("new"))
    new, reported, agent = made
    assert isinstance(new, Node)
    assert isinstance(reported, CSINode)
    assert isinstance(agent, Pod)
    assert new.metadata.labels == {HOSTNAME: "new", "own": "n1"}
    assert [taint.key for taint in new.spec.taints] == ["dedicated"]
    assert not new.spec.unschedulable
    assert (reported.name, reported.spec) == ("new", csinode.spec)
    assert (agent.spec.node_name, agent.name) == ("new", "agent-new")


def test_daemons_of_a_template_follow_from_the_daemon_sets() -> None:
    everywhere = make_daemon_set("everywhere", make_pod("agent").obj()).obj()
    bound = make_pod("agent").node_selector(disk="fast").obj()
    daemons = daemons_for(sized(), [everywhere, make_daemon_set("elsewhere", bound).obj()])
    assert [pod.metadata.owner_references[0].name for pod in daemons] == ["everywhere"]
    made = list(NodeTemplate(sized(), daemons=daemons).objects("new"))
    assert [pod.spec.node_name for pod in made if isinstance(pod, Pod)] == ["new"]


def test_a_template_needs_its_node() -> None:
    with pytest.raises(LookupError, match="'gone' is not in the snapshot"):
        NodeTemplate.from_node(Snapshot(), "gone")


def test_nodes_with_the_least_room_are_filled_first_and_only_those_named() -> None:
    nodes = [make_node(f"n{at}").capacity(cpu=str(at), pods=9).obj() for at in (1, 2, 3)]
    snapshot = Snapshot(nodes)
    (group,) = group_pods(snapshot, [pod.obj() for pod in replicas(5, cpu="1")])
    with snapshot.fork():
        filled = fill(snapshot, group, 4)
        assert [node for _, node in filled.placed] == ["n1", "n2", "n2", "n3"]
        assert [pod.name for pod in filled.left.pods] == ["p-4"]
        assert len(snapshot.pods_on("n2")) == 2
    assert not snapshot.pods_on("n2")
    with snapshot.fork():
        assert {node for _, node in fill(snapshot, group, among=["n3"]).placed} == {"n3"}


def test_nothing_is_bought_for_what_fits_nodes_that_are_there() -> None:
    snapshot = Snapshot([sized("n1")])
    groups = group_pods(snapshot, [pod.obj() for pod in replicas(12, cpu="1")])
    (option,) = options(snapshot, [NodeTemplate(sized())], groups, [10])
    assert (len(option.placed), option.estimate.nodes, option.helped) == (8, 1, 12)
    assert not snapshot.pods_on("n1")
