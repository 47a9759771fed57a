"""VolumeBinding: which claims can be served where, and what is told of those that cannot."""

from __future__ import annotations

from bayplan.kube.meta import KubeObject, LabelSelector
from bayplan.kube.storage import StorageClass
from tests.builders import (
    make_capacity,
    make_csidriver,
    make_csinode,
    make_node,
    make_pod,
    make_pv,
    make_pvc,
    make_storage_class,
)
from tests.fit.kubernetes import kubernetes, node, reasons
from tests.fit.plugins.details import details

EBS = "ebs.csi.aws.com"


def test_binding_names_the_claims_and_why() -> None:
    selected = make_pvc("held").storage_class("fast")
    selected.annotation("volume.kubernetes.io/selected-node", "other")
    objects: list[KubeObject] = [
        make_node("n").zone("a").obj(),
        make_csinode("n").driver(EBS, 9).driver("tight.example.com", 9).obj(),
        make_storage_class("fast", EBS).waits().obj(),
        make_storage_class("local", "kubernetes.io/no-provisioner").waits().obj(),
        make_storage_class("tight", "tight.example.com").waits().obj(),
        make_csidriver("tight.example.com").storage_capacity().obj(),
        make_capacity("cap", "tight").capacity("1Gi").obj(),
        selected.obj(),
        make_pvc("static").storage_class("local").size("5Gi").obj(),
        make_pvc("large").storage_class("tight").size("1536Mi").obj(),
    ]
    said = {
        claim: details(objects, make_pod("p").claim(claim))["n"]
        for claim in ("held", "static", "large")
    }
    assert said == {
        "held": ("claim default/held is selected for node other",),
        "static": (
            (
                "claim default/static wants 5 GiB of class 'local', which has no provisioner,"
                " and no available volume that can be reached from here will do"
            ),
        ),
        "large": ("claim default/large wants 1.5 GiB of class 'tight', more than is left here",),
    }


DRIVER = "ebs.csi.aws.com"


NO_PROVISIONER = "kubernetes.io/no-provisioner"


def static_class(name: str = "static") -> StorageClass:
    return make_storage_class(name, NO_PROVISIONER).waits().obj()


def test_a_volume_that_names_a_claim_of_another_class_does_not_serve_it() -> None:
    volume = make_pv("v").size("5Gi").storage_class("other").bound_to("c").csi(DRIVER, "h").obj()
    claim = make_pvc("c").size("1Gi").storage_class("static").obj()
    snapshot = kubernetes(node(), static_class(), volume, claim)
    said = reasons(snapshot, make_pod("p").claim("c").obj())
    assert said == {"n1": ("node(s) didn't find available persistent volumes to bind",)}


def test_a_claim_that_a_pod_names_twice_takes_two_volumes() -> None:
    claim = make_pvc("c").size("1Gi").storage_class("static").obj()
    volumes = [
        make_pv(name).size("5Gi").storage_class("static").csi(DRIVER, name).obj()
        for name in ("v1", "v2")
    ]
    for volume in volumes:
        volume.status.phase = "Available"
    twice = make_pod("p").claim("c").claim("c").obj()
    snapshot = kubernetes(node(), static_class(), claim, volumes[0])
    assert snapshot.decide(twice).node is None
    snapshot.put(volumes[1])
    assert snapshot.decide(twice).node == "n1"


def test_of_several_claims_the_problem_of_the_smallest_is_told() -> None:
    full = make_storage_class("full", DRIVER).waits().obj()
    driver = make_csidriver(DRIVER).storage_capacity().obj()
    capacity = make_capacity("room", "full").capacity("1Gi").topology(LabelSelector()).obj()
    large = make_pvc("large").size("5Gi").storage_class("full").obj()
    small = make_pvc("small").size("2Gi").storage_class("static").obj()
    snapshot = kubernetes(node(), static_class(), full, driver, capacity, large, small)
    said = reasons(snapshot, make_pod("p").claim("large").claim("small").obj())
    assert said == {"n1": ("node(s) didn't find available persistent volumes to bind",)}
