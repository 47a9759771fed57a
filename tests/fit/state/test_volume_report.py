"""Who uses a node's places for volumes, and who says how many there are."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.fit import Profile, Snapshot
from bayplan.fit.state.volume_report import VolumeReport, volumes_on
from bayplan.fit.volumes.limits import LimitSource
from bayplan.kube.meta import KubeObject
from tests.builders import (
    make_attachment,
    make_csinode,
    make_node,
    make_pod,
    make_pv,
    make_pvc,
    make_storage_class,
)

EBS = "ebs.csi.aws.com"
IN_TREE_EBS = "kubernetes.io/aws-ebs"


def bound(claim: str) -> list[KubeObject]:
    return [
        make_pv(f"pv-{claim}").csi(EBS, f"vol-{claim}").bound_to(claim).obj(),
        make_pvc(claim).volume(f"pv-{claim}").obj(),
    ]


def only(snapshot: Snapshot) -> VolumeReport:
    (report,) = snapshot.volumes()
    return report


def test_two_pods_of_one_volume_take_one_place() -> None:
    snapshot = Snapshot(
        [
            make_node("n").obj(),
            make_csinode("n").driver(EBS, 3).obj(),
            *bound("a"),
            make_pod("one").claim("a").node("n").obj(),
            make_pod("two").claim("a").node("n").obj(),
        ]
    )
    report = only(snapshot)
    assert (report.used, report.limit.count, report.free) == (1, 3, 2)
    assert report.uses[0].pods == ("default/one", "default/two")


def test_an_attachment_without_a_pod_takes_a_place() -> None:
    snapshot = Snapshot(
        [
            make_node("n").obj(),
            make_csinode("n").driver(EBS, 1).obj(),
            *bound("a"),
            make_attachment("va", EBS, "n", "pv-a").obj(),
        ]
    )
    report = only(snapshot)
    assert report.is_full
    assert (report.uses[0].pods, report.uses[0].attachments) == ((), ("va",))


def test_a_driver_without_a_limit_is_never_full() -> None:
    report = only(Snapshot([make_node("n").obj(), make_csinode("n").driver(EBS).obj()]))
    assert (report.free, report.limit.source, report.is_full) == (None, LimitSource.NONE, False)


def test_a_limit_that_is_exceeded_leaves_nothing_free() -> None:
    objects = [make_node("n").obj(), make_csinode("n").driver(EBS, 1).obj()]
    for claim in ("a", "b"):
        objects += [*bound(claim), make_pod(claim).claim(claim).node("n").obj()]
    report = only(Snapshot(objects))
    assert (report.used, report.free) == (2, 0)


def test_a_node_without_any_driver_shows_those_of_others_as_missing() -> None:
    nodes = [make_node("n1").obj(), make_node("n2").obj()]
    reports = Snapshot([*nodes, make_csinode("n1").driver(EBS, 4).obj()]).volumes()
    assert [(one.node, one.limit.source) for one in reports] == [
        ("n1", LimitSource.CSINODE),
        ("n2", LimitSource.MISSING),
    ]


def test_in_tree_volumes_count_for_the_plugin_where_there_is_no_csinode() -> None:
    snapshot = Snapshot([make_node("n").obj(), make_pod("p").ebs("vol-1").node("n").obj()])
    report = only(snapshot)
    assert (report.driver, report.used) == (IN_TREE_EBS, 1)
    assert (report.limit.count, report.limit.source) == (39, LimitSource.FALLBACK)


def test_an_unbound_claim_counts_for_its_class() -> None:
    snapshot = Snapshot(
        [
            make_node("n").obj(),
            make_csinode("n").driver(EBS, 2).obj(),
            make_storage_class("fast", EBS).waits().obj(),
            make_pvc("c").storage_class("fast").obj(),
            make_pod("p").claim("c").node("n").obj(),
        ]
    )
    assert only(snapshot).used == 1


def test_an_unknown_node_is_an_error_that_names_it() -> None:
    with pytest.raises(LookupError, match="'gone'"):
        volumes_on(Snapshot().cluster, "gone", EBS)


@given(
    st.lists(
        st.tuples(st.sampled_from("abcde"), st.sampled_from(["n1", "n2"]), st.booleans()),
        max_size=12,
    )
)
def test_the_report_counts_as_the_filter_does(uses: list[tuple[str, str, bool]]) -> None:
    objects: list[KubeObject] = [obj for claim in "abcde" for obj in bound(claim)]
    objects += [make_node("n1").obj(), make_csinode("n1").driver(EBS, 3).obj()]
    objects += [make_node("n2").obj(), make_csinode("n2").driver(EBS, 9).obj()]
    for index, (claim, node, by_pod) in enumerate(uses):
        if by_pod:
            objects.append(make_pod(f"p{index}").claim(claim).node(node).obj())
        else:
            objects.append(make_attachment(f"va{index}", EBS, node, f"pv-{claim}").obj())
    snapshot = Snapshot(objects, profile=Profile())
    columns = snapshot.cluster.attached_volumes.columns(EBS)
    for report in snapshot.volumes():
        slot = snapshot.cluster.slots.by_name[report.node]
        assert report.used == columns.used[slot]
        assert report.limit.count == columns.limit[slot]
