"""How many volumes a machine takes by its type, and what nodes publish of that."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.kube.attachlimits import (
    PUBLISHED,
    Ec2Machine,
    ebs_limit,
    keys_of,
    limit_in,
    published_counts,
    published_rules,
    unreadable_limits,
)
from bayplan.kube.meta import Quantity
from bayplan.kube.resources import is_attach_limit


@pytest.mark.parametrize(
    ("machine", "limit"),
    [
        (Ec2Machine(max_attachments=27), 26),
        (Ec2Machine(max_attachments=32), 31),
        (Ec2Machine(max_attachments=1), 1),
        (Ec2Machine(max_attachments=0), 1),
        (Ec2Machine(), 26),
        (Ec2Machine(nvme_stores=4), 22),
        (Ec2Machine(interfaces=15, nvme_stores=20), 1),
        (Ec2Machine(is_nitro=False), 39),
    ],
)
def test_what_ec2_tells_counts_and_then_its_rules(machine: Ec2Machine, limit: int) -> None:
    assert ebs_limit(machine) == limit


@pytest.mark.parametrize(
    ("written", "limit"),
    [("25", 25), (25, 25), ("0", 0), ("1k", 1000), ("2000m", 2), ("9223372036854775808", 2**63)],
)
def test_whole_numbers_are_limits_however_they_are_written(written: Quantity, limit: int) -> None:
    assert limit_in(written) == limit


@pytest.mark.parametrize("written", ["-1", -1, "1500m", "0.5", "", "many", "1e", "--1"])
def test_nothing_else_is_a_limit(written: Quantity) -> None:
    assert limit_in(written) is None
    amounts = {"cpu": "-1", "attachable-volumes-x": written, "storage-attach-limits-y": "3"}
    assert unreadable_limits(amounts) == {"attachable-volumes-x": written}


@given(
    st.dictionaries(st.text().map("attachable-volumes-{}".format), st.text()),
    st.dictionaries(st.text().filter(lambda key: not is_attach_limit(key)), st.text()),
)
def test_limits_that_are_noted_are_read_again_and_nothing_else(
    rules: dict[str, str], others: dict[str, str]
) -> None:
    assert published_rules({PUBLISHED: json.dumps({**others, **rules})}) == rules


@given(st.text())
def test_whatever_stands_in_the_annotation_can_be_asked_about(text: str) -> None:
    assert isinstance(published_rules({PUBLISHED: text}), dict)
    assert isinstance(published_counts({PUBLISHED: text}), dict)


def test_a_driver_that_took_a_plugin_over_may_be_limited_under_either_name() -> None:
    assert keys_of("ebs.csi.aws.com") == (
        "attachable-volumes-csi-ebs.csi.aws.com",
        "storage-attach-limits-csi-ebs.csi.aws.com",
        "attachable-volumes-aws-ebs",
        "storage-attach-limits-aws-ebs",
    )
    assert len(keys_of("disk.example.com")) == 2
