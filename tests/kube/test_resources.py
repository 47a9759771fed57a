"""Resources are told apart by their names as kube-scheduler tells them."""

from __future__ import annotations

import pytest

from bayplan.kube.resources import (
    ATTACH_LIMIT_PREFIXES,
    csi_attach_limit_driver,
    csi_attach_limit_key,
    is_attach_limit,
    is_extended,
    is_hugepage,
    is_scalar,
)

PROPOSED = ATTACH_LIMIT_PREFIXES[1]


@pytest.mark.parametrize(
    ("name", "extended", "hugepage", "attach_limit", "scalar"),
    [
        ("cpu", False, False, False, False),
        ("memory", False, False, False, False),
        ("ephemeral-storage", False, False, False, False),
        ("pods", False, False, False, False),
        ("hugepages-2Mi", False, True, False, True),
        ("nvidia.com/gpu", True, False, False, True),
        ("kubernetes.io/thing", False, False, False, True),
        ("sub.kubernetes.io/thing", False, False, False, True),
        ("requests.nvidia.com/gpu", False, False, False, False),
        ("example.com/" + "x" * 64, False, False, False, False),
        ("attachable-volumes-aws-ebs", False, False, True, True),
        ("attachable-volumes-csi-ebs.csi.aws.com", False, False, True, True),
        ("storage-attach-limits-gce-pd", False, False, True, True),
    ],
)
def test_a_name_says_what_a_resource_is(
    name: str, extended: bool, hugepage: bool, attach_limit: bool, scalar: bool
) -> None:
    told = (is_extended(name), is_hugepage(name), is_attach_limit(name), is_scalar(name))
    assert told == (extended, hugepage, attach_limit, scalar)


def test_a_short_driver_name_is_its_key() -> None:
    assert csi_attach_limit_key("ebs.csi.aws.com") == "attachable-volumes-csi-ebs.csi.aws.com"
    longest = "d" * 39
    assert csi_attach_limit_key(longest) == f"attachable-volumes-csi-{longest}"


def test_a_long_driver_name_is_shortened_to_its_beginning_and_a_hash() -> None:
    driver = "com.amazon.kubernetes.eks.ec2.ebs/csi-driver"
    key = csi_attach_limit_key(driver)
    assert key == "attachable-volumes-csi-com.amazon.kubernetes.e" + key[-16:]
    assert len(key) == 62
    assert csi_attach_limit_key(driver + "x") != key


def test_a_long_name_behind_the_proposed_prefix_is_still_a_resource_name() -> None:
    key = csi_attach_limit_key("com.amazon.kubernetes.eks.ebs-driver.example", PROPOSED)
    assert key == "storage-attach-limits-csi-com.amazon.kubernete" + key[-16:]
    assert len(key) == 62


@pytest.mark.parametrize("prefix", ATTACH_LIMIT_PREFIXES)
def test_the_driver_of_a_key_is_known_unless_its_name_was_shortened(prefix: str) -> None:
    for driver in ("ebs.csi.aws.com", "x" * 36, "x" * 35):
        assert csi_attach_limit_driver(csi_attach_limit_key(driver, prefix)) == driver
    for driver in ("x" * 40, "com.amazon.kubernetes.eks.ebs-driver.example"):
        assert csi_attach_limit_driver(csi_attach_limit_key(driver, prefix)) == ""
