"""What the page shows of a cluster."""

from __future__ import annotations

import pytest

from bayplan.kube.events import Event
from bayplan.kube.meta import ObjectMeta, ObjectReference
from bayplan.kube.volcano import GROUP_NAME_ANNOTATIONS, PodGroup
from bayplan.nodegroups import TemplateNodeInfo
from bayplan.ui.picture.groups import GroupFacts
from tests.builders import (
    make_csinode,
    make_node,
    make_pod,
    make_pod_group,
    make_pv,
    make_pvc,
    make_storage_class,
)
from tests.ui.pages import page_of, rows

pytestmark = pytest.mark.whole


DRIVER = "ebs.csi.aws.com"


def test_a_node_shows_what_it_has_and_a_pod_what_it_asks_for() -> None:
    page = page_of(
        make_node("n1")
        .zone("a")
        .capacity(cpu="4", memory="8Gi", pods=110)
        .taint("gpu", "yes")
        .obj(),
        make_pod("web", "shop")
        .cpu("500m")
        .memory("1Gi")
        .owner("ReplicaSet", "web")
        .node("n1")
        .obj(),
    )
    node, pod = rows(page, "nodes")["n1"], rows(page, "pods")["shop/web"]
    assert (node["zone"], node["cpu"], node["memory"], node["podsMax"]) == ("a", 4000, 8 << 30, 110)
    assert node["taints"] == ["gpu=yes:NoSchedule"]
    assert (pod["node"], pod["cpu"], pod["memory"]) == ("n1", 500, 1 << 30)
    assert pod["owner"] == "ReplicaSet web"
    assert set(rows(page, "zones")) == {"a"}


def test_rails_say_the_limit_where_it_comes_from_and_that_it_is_exceeded() -> None:
    page = page_of(
        make_node("n1").obj(),
        make_csinode("n1").driver(DRIVER, 1).obj(),
        make_storage_class("ebs", DRIVER).obj(),
        *(
            one
            for name in ("a", "b")
            for one in (
                make_pvc(name).storage_class("ebs").volume(f"pv-{name}").obj(),
                make_pv(f"pv-{name}").csi(DRIVER, f"vol-{name}").bound_to(name).obj(),
                make_pod(name).claim(name).node("n1").obj(),
            )
        ),
    )
    rail = rows(page, "rails")[f"n1 {DRIVER}"]
    assert (rail["used"], rail["limit"], rail["origin"], rail["over"]) == (2, 1, "CSINode", True)
    assert "limit 1" in rows(page, "nodes")["n1"]["note"]


def test_a_driver_that_waiting_pods_need_and_a_node_lacks_is_missing_there() -> None:
    page = page_of(
        make_node("with").obj(),
        make_node("without").obj(),
        make_csinode("with").driver(DRIVER, 8).obj(),
        make_storage_class("ebs", DRIVER).waits().obj(),
        make_pvc("c").storage_class("ebs").obj(),
        make_pod("p").claim("c").obj(),
    )
    missing = {name: row["missing"] for name, row in rows(page, "nodes").items()}
    assert missing == {"with": [], "without": [DRIVER]}


def test_pods_that_wait_alike_are_one_row_with_their_cause() -> None:
    page = page_of(
        make_node("n1").capacity(cpu="1", memory="1Gi", pods=10).obj(),
        *(make_pod(f"big-{n}").cpu("4").owner("ReplicaSet", "big").obj() for n in range(3)),
        make_pod("held").gate("example.com/later").obj(),
    )
    found = {row["title"]: row for row in rows(page, "waiting").values()}
    assert found["ReplicaSet big"]["cause"] == "resources"
    assert found["ReplicaSet big"]["count"] == 3
    assert found["ReplicaSet big"]["message"] == "Insufficient cpu"
    assert found["default/held"]["cause"] == "gate"
    assert rows(page, "pods")["default/held"]["state"] == "gated"


def test_nodes_of_a_pool_are_a_group_that_says_by_which_label() -> None:
    label = "cloud.google.com/gke-nodepool"
    page = page_of(*(make_node(name).label(label, "blue").obj() for name in ("a", "b")))
    group = rows(page, "groups")["blue"]
    assert (group["size"], group["source"]) == (2, f"label {label}")
    assert {row["group"] for row in rows(page, "nodes").values()} == {"blue"}


def triggered(pod: str, group: str) -> Event:
    return Event(
        metadata=ObjectMeta(name=f"{pod}.1", namespace="default"),
        regarding=ObjectReference(kind="Pod", namespace="default", name=pod),
        reason="TriggeredScaleUp",
        note=f"pod triggered scale-up: [{{{group} 0->2 (max: 5)}}]",
    )


def test_nodes_on_their_way_are_ghosts_that_the_pods_they_were_bought_for_know() -> None:
    pods = [make_pod(f"p{number}").cpu("2").obj() for number in range(4)]
    page = page_of(*pods, *(triggered(pod.name, "blue") for pod in pods))
    template = TemplateNodeInfo(
        make_node("next").capacity(cpu="4", memory="8Gi", pods=10).obj(),
        make_csinode("next").driver(DRIVER, 8).obj(),
    )
    coming = {"cloud://1": True, "cloud://2": True, "cloud://3": False}
    facts = GroupFacts("blue", "cloud", 0, 5, 3, 0.5, template=template, instances=coming)
    page.picture.groups.update("cloud", [facts])
    page.picture.draw_all()
    nodes = rows(page, "nodes")
    assert {name: row["upcoming"] for name, row in nodes.items()} == {
        "cloud://1": True,
        "cloud://2": True,
    }
    assert (nodes["cloud://1"]["cpu"], nodes["cloud://1"]["group"]) == (4000, "blue")
    assert rows(page, "rails")[f"cloud://1 {DRIVER}"]["limit"] == 8
    meant = [row["upcoming"] for _, row in sorted(rows(page, "pods").items())]
    assert meant == ["cloud://1", "cloud://1", "cloud://2", "cloud://2"]
    group = rows(page, "groups")["blue"]
    assert (group["min"], group["max"], group["price"], group["upcoming"]) == (0, 5, 0.5, 2)


def test_a_ghost_is_gone_once_its_node_is_there() -> None:
    page = page_of()
    facts = GroupFacts("blue", "cloud", instances={"cloud://1": True})
    page.picture.groups.update("cloud", [facts])
    page.picture.draw_all()
    assert rows(page, "nodes")["cloud://1"]["upcoming"]
    node = make_node("n1").provider_id("cloud://1").obj()
    page.picture.snapshot.put(node)
    page.picture.draw_all()
    assert list(rows(page, "nodes")) == ["n1"]
    assert rows(page, "nodes")["n1"]["group"] == "blue"


def test_an_autoscalers_status_says_what_its_groups_are() -> None:
    status = """
time: 2026-03-01 12:00:00 +0000 UTC
clusterWide: {scaleUp: {status: InProgress}, scaleDown: {status: NoCandidates}}
nodeGroups:
- name: blue
  health: {minSize: 1, maxSize: 9, cloudProviderTarget: 2}
"""
    page = page_of()
    meta = {"namespace": "kube-system", "name": "cluster-autoscaler-status"}
    page.extras.take_untyped(
        {"kind": "ConfigMap", "metadata": meta, "data": {"status": status}}, gone=False
    )
    page.picture.draw_all()
    group = rows(page, "groups")["blue"]
    assert (group["min"], group["max"], group["target"], group["upcoming"]) == (1, 9, 2, 2)
    assert group["source"] == "autoscaler status"
    assert "scale-up: InProgress" in rows(page, "plans")["last"]["note"]


def test_a_pod_that_does_not_start_for_minutes_is_stuck() -> None:
    old, new = "2026-03-01T11:00:00Z", "2026-03-01T11:59:00Z"
    page = page_of(
        make_node("n1").obj(),
        make_pod("old").node("n1").phase("Pending").created(old).obj(),
        make_pod("new").node("n1").phase("Pending").created(new).obj(),
    )
    found = {name: row["state"] for name, row in rows(page, "pods").items()}
    assert found == {"default/old": "stuck", "default/new": "starting"}


def test_a_cloud_knows_its_groups_better_than_a_file_does() -> None:
    page = page_of()
    page.picture.groups.update("declared", [GroupFacts("blue", "declared", max=3)])
    page.picture.groups.update("cloud", [GroupFacts("blue", "cloud", max=9)])
    page.picture.draw_all()
    group = rows(page, "groups")["blue"]
    assert (group["max"], group["source"]) == (9, "cloud, declared")


def test_pods_are_of_the_queue_that_their_group_names() -> None:
    page = page_of(
        make_node("n1").obj(),
        make_pod("p").annotation(GROUP_NAME_ANNOTATIONS[0], "gang").node("n1").obj(),
    )
    assert rows(page, "pods")["default/p"]["queue"] == "default"
    page.extras.take(make_pod_group("gang").queue("research").obj())
    page.picture.draw_all()
    assert rows(page, "pods")["default/p"]["queue"] == "research"
    page.extras.drop(PodGroup, "default/gang")
    page.picture.draw_all()
    assert rows(page, "pods")["default/p"]["queue"] == "default"
