"""What the page shows of a cluster."""

from __future__ import annotations

from tests.builders import make_csinode, make_node, make_pod, make_pv, make_pvc, make_storage_class
from tests.ui.pages import page_of, rows

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
    assert "the limit is 1" in rows(page, "nodes")["n1"]["note"]


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
