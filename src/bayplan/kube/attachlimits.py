"""How many volumes a node takes: what it may publish, and what is known of a machine by its type.

A node publishes limits as amounts of `status.allocatable` (`kube.resources` has the keys). Only
whole numbers from 0 on are limits; whatever else stands there says nothing. Which rule gave a
number that Bayplan's own agent has published is in an annotation, which is also how the agent knows
its keys from those of others.

Of machines there is only EBS, from what EC2 tells of an instance type. Its own maximum counts where
it tells one; else the rules of EC2's user guide ("Amazon EBS volume limits"): a Nitro machine has
28 slots that volumes share with network interfaces and NVMe instance stores, an older one takes 39
volumes. In both cases one volume is the machine's own. No machine is taken to have less than one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeVar

import msgspec

from bayplan.kube.meta import Quantity
from bayplan.kube.quantity import QuantityError, parse
from bayplan.kube.resources import ATTACH_LIMIT_PREFIXES, csi_attach_limit_key, is_attach_limit

T = TypeVar("T")
PUBLISHED = "bayplan.io/attach-limits"
"""Of a Node or CSINode: which limits our agent has written there, each with the rule behind it."""
IN_TREE_NAMES = {
    "ebs.csi.aws.com": "aws-ebs",
    "pd.csi.storage.gke.io": "gce-pd",
    "disk.csi.azure.com": "azure-disk",
    "cinder.csi.openstack.org": "cinder",
}
"""How keys end of plugins that a CSI driver took over, by driver."""
_MOST_READ = 64 * 1024
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


@lru_cache(4096)
def limit_in(written: Quantity) -> int | None:
    """The limit that an amount stands for; None if it is none, being negative, broken or no number.

    Such an amount is never taken for "any number".
    """
    try:
        amount = parse(written)
    except QuantityError:
        return None
    return int(amount) if amount >= 0 and amount.denominator == 1 else None


def keys_of(driver: str) -> tuple[str, ...]:
    """The keys under which a node may publish the limit of a CSI driver, the first that counts
    first: its own, and those of the plugin that it took over.
    """
    own = [csi_attach_limit_key(driver, prefix) for prefix in ATTACH_LIMIT_PREFIXES]
    name = IN_TREE_NAMES.get(driver)
    old = [f"{prefix}{name}" for prefix in ATTACH_LIMIT_PREFIXES] if name else []
    return (*own, *old)


def unreadable_limits(amounts: Mapping[str, Quantity]) -> dict[str, Quantity]:
    """The attach limits among these amounts that cannot be any, by key."""
    return {
        key: written
        for key, written in amounts.items()
        if is_attach_limit(key) and limit_in(written) is None
    }


def published_rules(annotations: Mapping[str, str]) -> dict[str, str]:
    """What our agent has published on a node: the rule behind each limit, by its key.

    Anybody can write an annotation. Whatever else it names, such as cpu, is not ours.
    """
    noted = _noted(annotations, dict[str, str])
    return {key: rule for key, rule in noted.items() if is_attach_limit(key)}


def published_counts(annotations: Mapping[str, str]) -> dict[str, int]:
    """What our agent has written into a CSINode: counts, by driver."""
    return _noted(annotations, dict[str, int])


def _noted(annotations: Mapping[str, str], shape: type[T]) -> T:
    text = annotations.get(PUBLISHED, "")
    if len(text) > _MOST_READ:
        return shape()
    try:
        return msgspec.json.decode(text, type=shape)
    except msgspec.DecodeError:
        return shape()
