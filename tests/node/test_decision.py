"""What is published, and the smallest change that gets a node there."""

from __future__ import annotations

import json
from dataclasses import replace

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan.kube.attachlimits import PUBLISHED_LIMITS
from bayplan.kube.attachtables import CustomLimits
from bayplan.kube.labels import BETA_INSTANCE_TYPE, INSTANCE_TYPE
from bayplan.kube.nodes import Node
from bayplan.kube.resources import ATTACH_LIMIT_PREFIXES
from bayplan.kube.storage import CSINode
from bayplan.node.decision import (
    AttachLimitSettings,
    DesiredLimits,
    Json,
    csinode_change,
    desired_limits,
    node_change,
)
from bayplan.node.plugins.base import LimitPluginOptions
from tests.builders import make_csinode, make_node

SHIPPED, PROPOSED = ATTACH_LIMIT_PREFIXES
EBS = "ebs.csi.aws.com"
DISK = "disk.example.com"
BOTH = AttachLimitSettings(prefixes=ATTACH_LIMIT_PREFIXES)


def ec2(instance_type: str = "m5.large", **amounts: str) -> Node:
    made = make_node("n").provider_id("aws:///eu-1a/i-1").label(INSTANCE_TYPE, instance_type)
    node = made.obj()
    node.metadata.uid = "u1"
    node.status.capacity = dict(amounts)
    node.status.allocatable = dict(amounts)
    return node


def patched(node: Node, change: Json | None) -> Node:
    """The node as an API server leaves it."""
    return msgspec.convert(_merged(msgspec.to_builtins(node), change or {}), Node)


def _merged(there: object, change: object) -> object:
    if not isinstance(change, dict):
        return change
    old = dict(there) if isinstance(there, dict) else {}
    for name, one in change.items():
        if one is None:
            old.pop(name, None)
        else:
            old[name] = _merged(old.get(name), one)
    return old


def published(node: Node, rules: AttachLimitSettings, csinode: CSINode | None = None) -> Node:
    """The node after it has been brought to what is wanted."""
    after = patched(node, node_change(node, desired_limits(node, csinode, rules).keys))
    assert node_change(after, desired_limits(after, csinode, rules).keys) is None
    return after


@pytest.mark.parametrize(
    ("prefixes", "keys"),
    [
        ((SHIPPED,), {"attachable-volumes-aws-ebs"}),
        ((PROPOSED,), {"storage-attach-limits-aws-ebs"}),
        (
            ATTACH_LIMIT_PREFIXES,
            {"attachable-volumes-aws-ebs", "storage-attach-limits-aws-ebs"},
        ),
    ],
)
def test_a_node_publishes_under_the_prefixes_that_are_wanted(
    prefixes: tuple[str, ...], keys: set[str]
) -> None:
    node = published(ec2(cpu="4"), AttachLimitSettings(prefixes=prefixes))
    for amounts in (node.status.capacity, node.status.allocatable):
        assert amounts == {"cpu": "4", **dict.fromkeys(keys, "26")}
    assert json.loads(node.metadata.annotations[PUBLISHED_LIMITS]).keys() == keys


def test_the_patch_names_nothing_but_our_keys_and_our_annotation() -> None:
    node = ec2(cpu="4", **{"attachable-volumes-csi-other": "3"})
    change = node_change(node, desired_limits(node, None, AttachLimitSettings()).keys)
    assert change is not None
    amounts = {"attachable-volumes-aws-ebs": "26"}
    assert change["status"] == {"capacity": amounts, "allocatable": amounts}
    meta = change["metadata"]
    assert isinstance(meta, dict)
    assert (meta["uid"], meta["annotations"].keys()) == ("u1", {PUBLISHED_LIMITS})


@pytest.mark.parametrize(
    "provider_id", ["", "aws", "aws:/eu/i-1", "://", "AWS:///eu/i-1", "://aws"]
)
def test_a_provider_id_of_no_known_scheme_is_of_no_cloud(provider_id: str) -> None:
    node = ec2()
    node.spec.provider_id = provider_id
    assert desired_limits(node, None, AttachLimitSettings()) == DesiredLimits()


@pytest.mark.parametrize("newer", [{}, {INSTANCE_TYPE: ""}])
def test_an_older_label_says_the_type_as_well(newer: dict[str, str]) -> None:
    node = ec2()
    node.metadata.labels = {BETA_INSTANCE_TYPE: "m5d.large", **newer}
    assert (
        published(node, AttachLimitSettings()).status.capacity["attachable-volumes-aws-ebs"] == "25"
    )


def test_another_type_gives_another_number_and_another_cloud_none() -> None:
    node = published(ec2(), BOTH)
    node.metadata.labels[INSTANCE_TYPE] = "c7a.48xlarge"
    node = published(node, BOTH)
    assert set(node.status.allocatable.values()) == {"127"}
    node.spec.provider_id = "gce://p/z/n"
    node = published(node, BOTH)
    assert node.status.allocatable.keys() == {
        "attachable-volumes-gce-pd",
        "storage-attach-limits-gce-pd",
    }
    node.spec.provider_id = "other://n"
    node = published(node, BOTH)
    assert (node.status.allocatable, node.status.capacity) == ({}, {})
    assert PUBLISHED_LIMITS not in node.metadata.annotations


def test_another_prefix_replaces_the_one_before() -> None:
    node = published(ec2(), AttachLimitSettings(prefixes=(PROPOSED,)))
    node = published(node, AttachLimitSettings(prefixes=(SHIPPED,)))
    assert node.status.allocatable.keys() == {"attachable-volumes-aws-ebs"}


def test_with_the_gate_off_nothing_of_ours_is_left_and_on_again_it_is_back() -> None:
    others = {"cpu": "4", "attachable-volumes-csi-other": "3", "storage-attach-limits-x": "2"}
    before = published(ec2(**others), BOTH)
    off = published(before, replace(BOTH, enabled=False))
    assert off.status.allocatable == others
    assert off.status.capacity == others
    assert published(off, BOTH).status == before.status


def test_what_somebody_else_wrote_under_our_key_is_set_right() -> None:
    for wrong in ("39", "-5", "1500m"):
        node = ec2(**{"attachable-volumes-aws-ebs": wrong})
        assert (
            published(node, AttachLimitSettings()).status.allocatable["attachable-volumes-aws-ebs"]
            == "26"
        )


def test_only_what_is_wrong_is_written() -> None:
    node = published(ec2(), BOTH)
    node.status.allocatable["attachable-volumes-aws-ebs"] = "30"
    change = node_change(node, desired_limits(node, None, BOTH).keys)
    assert change is not None
    assert change["status"] == {"allocatable": {"attachable-volumes-aws-ebs": "26"}}


def test_a_note_that_cannot_be_read_claims_no_key() -> None:
    for noted in ("", "{", "[]", '{"cpu": 4}', "x" * 70_000):
        node = ec2(cpu="4")
        node.metadata.annotations[PUBLISHED_LIMITS] = noted
        off = published(node, AttachLimitSettings(enabled=False))
        assert off.status.allocatable == {"cpu": "4"}


def test_a_note_that_claims_what_is_no_limit_takes_nothing_from_the_node() -> None:
    node = ec2(cpu="4", memory="1Gi", **{f"{PROPOSED}aws-ebs": "26"})
    claims = {"cpu": "mine", "memory": "mine", f"{PROPOSED}aws-ebs": "mine"}
    node.metadata.annotations[PUBLISHED_LIMITS] = json.dumps(claims)
    after = published(node, AttachLimitSettings())
    for amounts in (after.status.capacity, after.status.allocatable):
        assert amounts == {"cpu": "4", "memory": "1Gi", f"{SHIPPED}aws-ebs": "26"}


def test_a_driver_that_says_its_limit_is_published_and_followed() -> None:
    node, key = make_node("n").obj(), f"{SHIPPED}csi-{DISK}"
    for limit in (8, 16, 4):
        csinode = make_csinode("n").driver(DISK, limit).obj()
        node = published(node, AttachLimitSettings(), csinode)
        assert node.status.allocatable[key] == str(limit)
    node = published(node, AttachLimitSettings(), make_csinode("n").driver(DISK).obj())
    assert key not in node.status.allocatable


# -- CSINodes --------------------------------------------------------------------------------------


def csi_patched(csinode: CSINode, change: Json | None) -> CSINode:
    """The CSINode as an API server leaves it: drivers are merged by name."""
    if change is None:
        return csinode
    plain = msgspec.to_builtins(csinode)
    spec = change.get("spec") or {}
    assert isinstance(spec, dict)
    entries = {one["name"]: one for one in spec.get("drivers", [])}
    for one in plain["spec"]["drivers"]:
        one.update(entries.pop(one["name"], {}))
    assert not entries, "a patch must not make a driver"
    return msgspec.convert(_merged(plain, {"metadata": change["metadata"]}), CSINode)


def counts(csinode: CSINode) -> dict[str, int | None]:
    return {d.name: d.allocatable.count if d.allocatable else None for d in csinode.spec.drivers}


def brought(csinode: CSINode, node: Node, rules: AttachLimitSettings) -> CSINode:
    after = csi_patched(
        csinode, csinode_change(csinode, desired_limits(node, csinode, rules).drivers)
    )
    assert csinode_change(after, desired_limits(node, after, rules).drivers) is None
    return after


WRITES = AttachLimitSettings(
    LimitPluginOptions(own=CustomLimits(csi={DISK: {"m5*": 9, "c4*": 3}})),
    csi_nodes=True,
)


def test_only_drivers_that_say_nothing_get_a_limit_in_their_csinode() -> None:
    csinode = make_csinode("n").driver(EBS).driver(DISK, 5).driver("x.example.com").obj()
    assert counts(brought(csinode, ec2(), WRITES)) == {EBS: 26, DISK: 5, "x.example.com": None}
    assert brought(csinode, ec2(), replace(WRITES, csi_nodes=False)) == csinode


def test_a_limit_that_we_wrote_follows_the_type_and_goes_with_the_gate() -> None:
    csinode = brought(make_csinode("n").driver(EBS).driver(DISK).obj(), ec2(), WRITES)
    assert counts(csinode) == {EBS: 26, DISK: 9}
    csinode = brought(csinode, ec2("c4.large"), WRITES)
    assert counts(csinode) == {EBS: 39, DISK: 3}
    off = brought(csinode, ec2(), replace(WRITES, enabled=False))
    assert counts(off) == {EBS: None, DISK: None}
    assert PUBLISHED_LIMITS not in off.metadata.annotations


def test_a_driver_that_speaks_after_us_is_believed() -> None:
    csinode = brought(make_csinode("n").driver(DISK).obj(), ec2(), WRITES)
    assert csinode.spec.drivers[0].allocatable is not None
    csinode.spec.drivers[0].allocatable.count = 30
    csinode = brought(csinode, ec2(), WRITES)
    assert counts(csinode) == {DISK: 30}
    off = brought(csinode, ec2(), replace(WRITES, enabled=False))
    assert counts(off) == {DISK: 30}


def test_what_we_wrote_into_a_csinode_is_not_taken_for_the_drivers_word() -> None:
    csinode = brought(make_csinode("n").driver(EBS).obj(), ec2(), WRITES)
    keys = desired_limits(ec2(), csinode, WRITES).keys
    assert keys.keys() == {"attachable-volumes-aws-ebs"}


# -- any history -----------------------------------------------------------------------------------

TYPES = ["m5.large", "m4.large", "c7a.48xlarge", "n4-standard-2", "Standard_D2_v2", "zz9", ""]
CLOUDS = ["aws:///z/i", "gce://p/z/n", "azure:///s", "openstack:///o", "sim://g/n", ""]
OTHERS = {
    "cpu": "4",
    "attachable-volumes-csi-other.example.com": "3",
    "storage-attach-limits-y": "-2",
}


@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(TYPES),
            st.sampled_from(CLOUDS),
            st.sampled_from([(SHIPPED,), (PROPOSED,), ATTACH_LIMIT_PREFIXES]),
            st.booleans(),
            st.one_of(st.none(), st.integers(0, 300)),
        ),
        min_size=1,
        max_size=8,
    )
)
def test_whatever_happens_a_node_has_just_what_is_wanted_and_what_others_wrote(
    history: list[tuple[str, str, tuple[str, ...], bool, int | None]],
) -> None:
    node, want = ec2(**OTHERS), DesiredLimits()
    for instance_type, provider, prefixes, on, limit in history:
        node.metadata.labels[INSTANCE_TYPE] = instance_type
        node.spec.provider_id = provider
        csinode = make_csinode("n").driver(DISK, limit).obj()
        rules = AttachLimitSettings(prefixes=prefixes, enabled=on)
        want = desired_limits(node, csinode, rules)
        node = published(node, rules, csinode)
        said = {key: str(one.count) for key, one in want.keys.items()}
        assert node.status.allocatable == OTHERS | said
        assert node.status.capacity == OTHERS | said
    assert published(node, AttachLimitSettings(enabled=False)).status.allocatable == OTHERS
