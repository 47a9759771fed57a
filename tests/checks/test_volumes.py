"""Limits, drivers and attachments: each trouble is found, and only where it is."""

from __future__ import annotations

from datetime import timedelta

from bayplan.checks import Severity
from bayplan.checks.findings import MOST_EXAMPLES
from bayplan.kube.meta import KubeObject
from bayplan.kube.storage import VolumeError
from tests.builders import (
    make_attachment,
    make_csidriver,
    make_csinode,
    make_node,
    make_pod,
    make_pv,
    make_pvc,
    make_storage_class,
)
from tests.checks.clusters import DISK, NEW, OLD, ZONE, codes, healthy, look, typed_node, without

EBS = "ebs.csi.aws.com"


def with_csinode(limit: int | None, node: str = "n1") -> list[KubeObject]:
    """The healthy cluster, where the driver says another limit on a node."""
    rest = without(healthy(), f"CSINode/{node}")
    return [*rest, make_csinode(node).driver(DISK, limit, ZONE).obj()]


def test_nothing_is_found_in_a_healthy_cluster() -> None:
    assert codes(healthy()) == []


def test_a_driver_without_a_limit() -> None:
    (one,) = look(with_csinode(None))
    assert (one.kind.code, one.about, one.count) == ("DriverWithoutLimit", DISK, 1)
    assert one.text == f"{DISK} reports no attach limit on 1 of 3 nodes that have it"
    assert [(example.name, example.detail) for example in one.examples] == [("n1", "m")]


def test_a_driver_of_which_nobody_says_a_limit_may_have_none() -> None:
    for driver, severity in ((DISK, Severity.INFO), (EBS, Severity.WARNING)):
        objects = [typed_node("n").obj(), make_csinode("n").driver(driver, None).obj()]
        objects += [make_csidriver(driver).obj(), make_storage_class("c", driver).obj()]
        (one,) = look(objects)
        assert (one.kind.code, one.severity) == ("DriverWithoutLimit", severity)
    (one,) = look(with_csinode(None))
    assert one.severity is Severity.WARNING, "it has one on other nodes"


def test_a_driver_that_attaches_nothing_or_that_nobody_uses_needs_no_limit() -> None:
    unattached = without(with_csinode(None), "CSIDriver", "VolumeAttachment")
    assert codes([*unattached, make_csidriver(DISK).no_attach().obj()]) == []
    unused = without(with_csinode(None), *("StorageClass", "PersistentVolume", "VolumeAttachment"))
    assert "DriverWithoutLimit" not in codes(unused)


def test_a_limit_that_the_node_publishes_itself_is_one() -> None:
    published = typed_node("n1").capacity({f"attachable-volumes-csi-{DISK}": "2"}).obj()
    assert codes([*without(with_csinode(None), "Node/n1"), published]) == []


def test_the_same_trouble_of_many_nodes_is_one_finding_with_some_examples() -> None:
    many: list[KubeObject] = []
    for number in range(500):
        many.append(typed_node(f"x{number}").obj())
        many.append(make_csinode(f"x{number}").driver(DISK, None, ZONE).obj())
    (one,) = look([*healthy(), *many])
    assert (one.count, len(one.examples)) == (500, MOST_EXAMPLES)


def test_a_limit_that_cannot_be_any() -> None:
    for written in ("-1", "1.5"):
        odd = make_node("odd").obj()
        odd.status.allocatable["attachable-volumes-aws-ebs"] = written
        found = [one for one in look([odd]) if one.kind.code == "ImpossibleLimit"]
        assert [one.kind.severity for one in found] == [Severity.ERROR]
        assert written in found[0].examples[0].detail
    fine = make_node("fine").capacity({"attachable-volumes-aws-ebs": "25"}).obj()
    assert codes([fine]) == []


def test_a_limit_that_nobody_believes() -> None:
    found = look(with_csinode(2**31 - 1))
    (one,) = [one for one in found if one.kind.code == "ImplausibleLimit"]
    assert one.severity is Severity.INFO
    assert one.text == f"{DISK} has an implausible attach limit on 1 of 3 nodes that have it"
    assert [example.detail for example in one.examples] == ["2,147,483,647"]
    assert "ImplausibleLimit" not in codes(with_csinode(100_000))


def test_a_limit_of_zero() -> None:
    assert codes(with_csinode(0)) == ["LimitOfZero", "LimitsDiffer"]
    assert codes(with_csinode(2)) == []


def test_limits_of_csinode_and_node_that_disagree() -> None:
    key = f"attachable-volumes-csi-{DISK}"
    rest = without(healthy(), "Node/n1")
    (one,) = look([*rest, typed_node("n1").capacity({key: "25"}).obj()])
    assert one.kind.code == "LimitsDisagree"
    assert one.examples[0].detail == f"CSINode 2, {key} 25"
    assert codes([*rest, typed_node("n1").capacity({key: "2"}).obj()]) == []


def test_limits_that_differ_within_an_instance_type() -> None:
    (one,) = look(with_csinode(9))
    assert (one.kind.code, one.kind.severity) == ("LimitsDiffer", Severity.INFO)
    assert "2 on 2 nodes, 9 on 1 node" in one.text
    other = [*without(with_csinode(9), "Node/n1"), typed_node("n1", kind="l").obj()]
    assert codes(other) == []


def test_a_node_without_a_driver_that_nodes_like_it_have() -> None:
    (one,) = look(without(healthy(), "CSINode/n1"))
    assert (one.kind.code, one.about, one.examples[0].name) == ("NodeWithoutDriver", DISK, "n1")


def test_a_node_may_be_without_a_driver_if_it_is_new_or_cordoned_or_of_another_kind() -> None:
    rest = without(healthy(), "CSINode/n1", "Node/n1")
    assert codes([*rest, typed_node("n1").created(NEW).obj()]) == []
    assert codes([*rest, typed_node("n1").unschedulable().obj()]) == []
    assert codes([*rest, typed_node("n1").ready("False").obj()]) == ["NodeNotReady"]
    assert codes([*rest, typed_node("n1", kind="gpu").obj()]) == []
    assert codes([*rest, typed_node("n1").taint("control-plane").obj()]) == []


def test_nodes_of_another_pool_need_not_have_the_drivers_of_this_one() -> None:
    others = [typed_node(f"o{n}").label("pool", "other").obj() for n in range(2)]
    nodes = [typed_node(f"n{n}").label("pool", "disks").obj() for n in range(3)]
    assert codes([*without(healthy(), "Node"), *nodes, *others]) == []


def test_labels_that_a_driver_itself_gives_to_nodes_make_them_no_less_alike() -> None:
    key = "topology.disk.csi.example.com/rack"
    objects = without(healthy(), "CSINode", "Node")
    for number in range(3):
        node = typed_node(f"n{number}")
        if number:
            node.label(key, "r1")
            objects.append(make_csinode(f"n{number}").driver(DISK, 2, key).obj())
        objects.append(node.obj())
    assert "NodeWithoutDriver" in codes(objects)


def test_grace_says_what_is_new() -> None:
    rest = without(healthy(), "CSINode/n1", "Node/n1")
    objects = [*rest, typed_node("n1").created(NEW).obj()]
    assert codes(objects, grace=timedelta(seconds=30)) == ["NodeWithoutDriver"]


def test_pods_with_volumes_of_a_driver_that_is_not_there() -> None:
    objects = [*without(healthy(), "CSINode/n0"), make_csinode("n0").obj()]
    assert codes(objects) == ["VolumesWithoutDriver", "NodeWithoutDriver"]
    assert "default/db" in look(objects)[0].examples[0].detail


def test_more_volumes_than_the_limit_whether_by_pods_or_attachments() -> None:
    attached = []
    for number in range(2):
        volume = make_pv(f"v{number}").csi(DISK, f"h{number}").obj()
        more = make_attachment(f"a{number}", DISK, "n0", f"v{number}").attached().obj()
        attached.append([volume, more])
    assert codes([*healthy(), *attached[0]]) == []
    (one,) = look([*healthy(), *attached[0], *attached[1]])
    assert (one.kind.code, one.kind.severity) == ("NodeOverLimit", Severity.ERROR)
    assert one.examples[0].detail == "3 volumes, limit 2 from CSINode"


def test_a_driver_without_its_csidriver() -> None:
    other = make_csidriver("other.example.com").obj()
    (one,) = look([*without(healthy(), "CSIDriver"), other])
    assert (one.kind.code, one.examples[0].name) == ("CSIDriverMissing", DISK)
    assert codes([*healthy(), other]) == []


def test_a_class_of_a_driver_that_is_on_no_node() -> None:
    other, wanted = make_csidriver("nfs.example.com"), make_storage_class("nfs", "nfs.example.com")
    (one,) = look([*healthy(), other.obj(), wanted.obj()])
    assert (one.kind.code, one.about) == ("DriverOnNoNode", "nfs.example.com")
    assert codes([*healthy(), other.obj()]) == []
    young = [typed_node("n").created(NEW).obj(), make_csinode("n").obj()]
    assert codes([*young, other.obj(), wanted.obj()]) == []


def test_claims_that_wait_for_a_provisioner_that_nobody_runs() -> None:
    wanted = make_storage_class("slow", "nobody.example.com").obj()
    claim = make_pvc("c").storage_class("slow").created(OLD).obj()
    (one,) = look([*healthy(), wanted, claim])
    assert (one.kind.code, one.about) == ("ProvisionerMissing", "slow")
    assert codes([*healthy(), wanted]) == []
    young = make_pvc("c").storage_class("slow").created(NEW).obj()
    assert codes([*healthy(), wanted, young]) == []
    by_hand = make_storage_class("slow", "kubernetes.io/no-provisioner").obj()
    assert codes([*healthy(), by_hand, claim]) == []


def test_volumes_attached_to_nodes_that_are_gone() -> None:
    gone = make_attachment("left", DISK, "n9", "pv").attached().created(OLD)
    (one,) = look([*healthy(), gone.obj()])
    assert (one.kind.code, one.examples[0].detail) == ("AttachedToGoneNode", "pv on n9")
    assert codes([*healthy(), gone.created(NEW).obj()]) == []


def test_volumes_that_do_not_come_or_go() -> None:
    stuck = make_attachment("stuck", DISK, "n1", "pv").obj()
    stuck.status.attach_error = VolumeError(message="volume is in use\n" + "x" * 10_000)
    (one,) = look([*healthy(), stuck])
    assert one.kind.code == "AttachFails"
    assert "\n" not in one.examples[0].detail
    assert len(one.examples[0].detail) < 600
    stuck.status.attached = True
    assert codes([*healthy(), stuck]) == []
    stuck.status.detach_error = VolumeError(message="busy")
    assert codes([*healthy(), stuck]) == []
    stuck.metadata.deletion_timestamp = OLD
    assert codes([*healthy(), stuck]) == ["DetachFails"]


def test_what_rests_on_kinds_that_were_not_read_is_not_said() -> None:
    assert codes([make_node("n").obj(), make_pod("p").node("n").obj()]) == []
    assert "CSIDriverMissing" not in codes(without(healthy(), "CSIDriver"))
