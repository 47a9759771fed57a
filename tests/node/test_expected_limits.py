"""What a node will publish, before there is one."""

from __future__ import annotations

import pytest

from bayplan.cli.options.attach_limits import ExpectedLimits, LimitTerms
from bayplan.kube.labels import INSTANCE_TYPE
from bayplan.kube.nodes import Node
from bayplan.kube.storage import CSINode
from bayplan.node.decision import AttachLimitSettings, desired_limits, node_change, with_limits
from bayplan.nodegroups import TemplateNodeInfo
from tests.builders import make_csinode, make_node

KEY = "attachable-volumes-aws-ebs"


def template_node(instance_type: str = "m5.large") -> Node:
    return make_node("t").label(INSTANCE_TYPE, instance_type).capacity({"cpu": "4"}).obj()


def drivers(*names: str) -> CSINode:
    made = make_csinode("t")
    for name in names:
        made = made.driver(name)
    return made.obj()


@pytest.mark.parametrize(
    ("csinode", "cloud", "limits"),
    [
        (drivers("ebs.csi.aws.com", "efs.csi.aws.com"), "", {KEY: "26"}),
        (drivers("efs.csi.aws.com"), "", {}),
        (drivers("ebs.csi.aws.com", "pd.csi.storage.gke.io"), "", {}),
        (None, "", {}),
        (None, "aws", {KEY: "26"}),
        (drivers("pd.csi.storage.gke.io"), "aws", {KEY: "26"}),
    ],
)
def test_whose_machine_it_is_is_told_or_seen_from_its_drivers(
    csinode: CSINode | None, cloud: str, limits: dict[str, str]
) -> None:
    node = template_node()
    found = with_limits(node, csinode, AttachLimitSettings(), cloud)
    assert found.status.allocatable == {**node.status.allocatable, **limits}
    assert found.status.capacity == {**node.status.capacity, **limits}
    assert found.spec == node.spec


@pytest.mark.parametrize("key", [KEY, "storage-attach-limits-aws-ebs"])
def test_a_limit_that_the_template_says_stays_and_counts(key: str) -> None:
    node = template_node()
    node.status.allocatable[key] = "10"
    assert with_limits(node, drivers("ebs.csi.aws.com"), AttachLimitSettings()) == node
    node.status.allocatable[key] = "1500m"
    found = with_limits(node, drivers("ebs.csi.aws.com"), AttachLimitSettings())
    assert found.status.allocatable[KEY] == "26"


def test_what_is_expected_is_what_the_agent_then_has_nothing_to_add_to() -> None:
    csinode = drivers("ebs.csi.aws.com")
    found = with_limits(template_node(), csinode, AttachLimitSettings())
    found.spec.provider_id = "aws:///eu-1a/i-1"
    assert node_change(found, desired_limits(found, csinode, AttachLimitSettings()).keys) is None


def test_nothing_is_expected_unless_it_is_asked_for_or_with_the_gate_off() -> None:
    template = TemplateNodeInfo(template_node(), drivers("ebs.csi.aws.com"))
    asked = ExpectedLimits(expect_limits=True, terms=LimitTerms(reserve_volumes=1))
    assert asked.expects("")(template).node.status.allocatable[KEY] == "25"
    assert asked.expects("AttachVolumeLimit=false")(template) == template
    assert ExpectedLimits().expects("")(template) == template
