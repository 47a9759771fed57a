"""How many volumes a machine takes, by its type, where neither driver nor person has said so yet.

Only EBS so far, from what EC2 tells of an instance type. Its own maximum counts where it tells one;
else the rules of EC2's user guide ("Amazon EBS volume limits"): a Nitro machine has 28 slots that
volumes share with network interfaces and NVMe instance stores, an older one takes 39 volumes. In
both cases one volume is the machine's own. No machine is taken to have less than one.
"""

from __future__ import annotations

from dataclasses import dataclass

NITRO_SLOTS = 28
OLDER_VOLUMES = 39
FEWEST = 1


@dataclass(frozen=True, slots=True)
class Ec2Machine:
    """What EC2 tells of an instance type that has to do with volumes."""

    is_nitro: bool = True
    max_attachments: int | None = None
    """Volumes at most, with the machine's own; None if EC2 does not tell."""
    interfaces: int = 1
    """Network interfaces that a machine begins with."""
    nvme_stores: int = 0
    """NVMe instance stores."""


def ebs_limit(machine: Ec2Machine) -> int:
    """How many volumes can be attached beside the machine's own."""
    if machine.max_attachments is not None:
        return max(FEWEST, machine.max_attachments - 1)
    if not machine.is_nitro:
        return OLDER_VOLUMES
    return max(FEWEST, NITRO_SLOTS - machine.interfaces - machine.nvme_stores - 1)
