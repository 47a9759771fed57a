"""How many volumes a machine takes by its type, and what nodes publish of that."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.kube.attachlimits import (
    PUBLISHED_LIMITS,
    Ec2InstanceType,
    attach_limit_keys,
    ebs_limit,
    invalid_attach_limits,
    parse_attach_limit,
    published_counts,
    published_rules,
)
from bayplan.kube.meta import Quantity
from bayplan.kube.resources import is_attach_limit


@pytest.mark.parametrize(
    ("machine", "limit"),
    [
        (Ec2InstanceType(max_attachments=27), 26),
        (Ec2InstanceType(max_attachments=32), 31),
        (Ec2InstanceType(max_attachments=1), 1),
        (Ec2InstanceType(max_attachments=0), 1),
        (Ec2InstanceType(), 26),
        (Ec2InstanceType(nvme_stores=4), 22),
        (Ec2InstanceType(interfaces=15, nvme_stores=20), 1),
        (Ec2InstanceType(is_nitro=False), 39),
    ],
)
def test_what_ec2_tells_counts_and_then_its_rules(machine: Ec2InstanceType, limit: int) -> None:
    assert ebs_limit(machine) == limit


@pytest.mark.parametrize(
    ("written", "limit"),
    [("25", 25), (25, 25), ("0", 0), ("1k", 1000), ("2000m", 2), ("9223372036854775808", 2**63)],
)
def test_whole_numbers_are_limits_however_they_are_written(written: Quantity, limit: int) -> None:
    assert parse_attach_limit(written) == limit


@pytest.mark.parametrize("written", ["-1", -1, "1500m", "0.5", "", "many", "1e", "--1"])
def test_nothing_else_is_a_limit(written: Quantity) -> None:
    assert parse_attach_limit(written) is None
    amounts = {"cpu": "-1", "attachable-volumes-x": written, "storage-attach-limits-y": "3"}
    assert invalid_attach_limits(amounts) == {"attachable-volumes-x": written}


@given(
    st.dictionaries(st.text().map("attachable-volumes-{}".format), st.text()),
    st.dictionaries(st.text().filter(lambda key: not is_attach_limit(key)), st.text()),
)
def test_limits_that_are_noted_are_read_again_and_nothing_else(
    rules: dict[str, str], others: dict[str, str]
) -> None:
    assert published_rules({PUBLISHED_LIMITS: json.dumps({**others, **rules})}) == rules


@given(st.text())
def test_whatever_stands_in_the_annotation_can_be_asked_about(text: str) -> None:
    assert isinstance(published_rules({PUBLISHED_LIMITS: text}), dict)
    assert isinstance(published_counts({PUBLISHED_LIMITS: text}), dict)


def test_a_driver_that_took_a_plugin_over_may_be_limited_under_either_name() -> None:
    assert attach_limit_keys("ebs.csi.aws.com") == (
        "attachable-volumes-csi-ebs.csi.aws.com",
        "storage-attach-limits-csi-ebs.csi.aws.com",
        "attachable-volumes-aws-ebs",
        "storage-attach-limits-aws-ebs",
    )
    assert len(attach_limit_keys("disk.example.com")) == 2
