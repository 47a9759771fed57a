"""How many volumes a machine takes by its type."""

from __future__ import annotations

import pytest

from bayplan.kube.attachlimits import Ec2Machine, ebs_limit


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
