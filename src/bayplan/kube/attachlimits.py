"""Attach limits: how nodes publish them, and the EBS limit of an EC2 instance type.

A node publishes limits as amounts in `status.allocatable` (`kube.resources` has the keys). Only
whole numbers from 0 on are limits; other values are ignored. An annotation records which keys
Bayplan's node agent has published and the rule behind each, so that the agent can tell its keys
from others.

The EBS limit of an instance type comes from EC2's description of it. If that has a maximum, the
maximum counts; otherwise the rules of EC2's user guide ("Amazon EBS volume limits"): a Nitro
instance has 28 attach slots, shared with network interfaces and NVMe instance stores, an older one
39. In both cases one slot is for the root volume. The limit is at least one.
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
PUBLISHED_LIMITS = "bayplan.io/attach-limits"
"""Annotation of a Node or CSINode: the limits that our agent has published, with their rules."""
IN_TREE_NAMES = {
    "ebs.csi.aws.com": "aws-ebs",
    "pd.csi.storage.gke.io": "gce-pd",
    "disk.csi.azure.com": "azure-disk",
    "cinder.csi.openstack.org": "cinder",
}
"""The suffix of the keys of the in-tree plugin that a CSI driver replaces, by driver."""
_MAX_ANNOTATION = 64 * 1024
NITRO_SLOTS = 28
NON_NITRO_SLOTS = 39
MIN_LIMIT = 1


@dataclass(frozen=True, slots=True)
class Ec2InstanceType:
    """What EC2 describes of an instance type that affects attach limits."""

    is_nitro: bool = True
    max_attachments: int | None = None
    """Maximum number of volumes, including the root volume; None if unknown."""
    interfaces: int = 1
    """Network interfaces that an instance starts with."""
    nvme_stores: int = 0
    """NVMe instance stores."""


def ebs_limit(instance_type: Ec2InstanceType) -> int:
    """Return how many volumes can be attached besides the root volume."""
    if instance_type.max_attachments is not None:
        return max(MIN_LIMIT, instance_type.max_attachments - 1)
    if not instance_type.is_nitro:
        return NON_NITRO_SLOTS
    return max(MIN_LIMIT, NITRO_SLOTS - instance_type.interfaces - instance_type.nvme_stores - 1)


@lru_cache(4096)
def parse_attach_limit(written: Quantity) -> int | None:
    """Return the limit that an amount means; None if it is negative, fractional or no number.

    Such an amount is never read as "no limit".
    """
    try:
        amount = parse(written)
    except QuantityError:
        return None
    return int(amount) if amount >= 0 and amount.denominator == 1 else None


def attach_limit_keys(driver: str) -> tuple[str, ...]:
    """Return the keys under which a node may publish the limit of a CSI driver.

    The first one found counts: the driver's own keys, then those of the in-tree plugin it replaces.
    """
    own = [csi_attach_limit_key(driver, prefix) for prefix in ATTACH_LIMIT_PREFIXES]
    name = IN_TREE_NAMES.get(driver)
    old = [f"{prefix}{name}" for prefix in ATTACH_LIMIT_PREFIXES] if name else []
    return (*own, *old)


def invalid_attach_limits(amounts: Mapping[str, Quantity]) -> dict[str, Quantity]:
    """Return the attach limits among these amounts that are not valid, by key."""
    return {
        key: written
        for key, written in amounts.items()
        if is_attach_limit(key) and parse_attach_limit(written) is None
    }


def published_rules(annotations: Mapping[str, str]) -> dict[str, str]:
    """Return the limits that our agent has published on a node: the rule behind each, by key.

    Any user can write an annotation, so keys that are not attach limits, such as cpu, are dropped.
    """
    rules = _published(annotations, dict[str, str])
    return {key: rule for key, rule in rules.items() if is_attach_limit(key)}


def published_counts(annotations: Mapping[str, str]) -> dict[str, int]:
    """Return the counts that our agent has written into a CSINode, by driver."""
    return _published(annotations, dict[str, int])


def _published(annotations: Mapping[str, str], expected: type[T]) -> T:
    text = annotations.get(PUBLISHED_LIMITS, "")
    if len(text) > _MAX_ANNOTATION:
        return expected()
    try:
        return msgspec.json.decode(text, type=expected)
    except msgspec.DecodeError:
        return expected()
