"""Where volumes can be reached: labels of migrated ones."""

from __future__ import annotations

from bayplan.kube.nodes import NodeSelectorTerm
from tests.builders import (
    make_csinode,
    make_node,
    make_pod,
    make_pv,
    make_pvc,
    node_term,
)
from tests.fit.kubernetes import kubernetes

DRIVER = "ebs.csi.aws.com"


BETA_REGION = "failure-domain.beta.kubernetes.io/region"


def test_a_migrated_volumes_old_region_label_is_renamed_only_where_it_has_values() -> None:
    migrated = make_csinode("n1").driver(DRIVER, 8).migrated("kubernetes.io/aws-ebs").obj()
    zoned = make_node("n1").capacity(cpu="4", memory="8Gi", pods=10).zone("a", "r").obj()
    claim = make_pvc("c").storage_class("x").volume("v").obj()

    def decide(*terms: NodeSelectorTerm) -> str | None:
        volume = make_pv("v").storage_class("x").bound_to("c").ebs("vol-1").node_affinity(*terms)
        snapshot = kubernetes(zoned, migrated, claim, volume.obj())
        return snapshot.decide(make_pod("p").claim("c").obj()).node

    old_zone = node_term("failure-domain.beta.kubernetes.io/zone", "In", "b")
    assert decide(old_zone, node_term(BETA_REGION, "Exists")) is None
    assert decide(old_zone, node_term(BETA_REGION, "In", "r")) == "n1"
