"""How many volumes a node can attach for a driver, and who says so.

In this order: the driver's own word in the node's CSINode; the node's `status.allocatable`, under
the keys that nodes have published limits by (gate AttachVolumeLimit); and, for plugins that no CSI
driver serves on this node, the fallback table, which KUBE_MAX_PD_VOLS replaces.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

from bayplan.fit.rules import VolumeRules
from bayplan.fit.volumes.migration import BY_DRIVER, BY_PLUGIN_NAME
from bayplan.kube import quantity
from bayplan.kube.labels import BETA_INSTANCE_TYPE, INSTANCE_TYPE
from bayplan.kube.nodes import Node
from bayplan.kube.resources import ATTACH_LIMIT_PREFIXES, csi_attach_limit_key
from bayplan.kube.storage import CSINode

NO_LIMIT = 1 << 40
"""Stands for "any number" in a column of limits."""
EBS_NITRO_TYPE = re.compile(r"^[cmr]5.*|t3|z1d")
FALLBACKS = {
    "kubernetes.io/aws-ebs": 39,
    "kubernetes.io/gce-pd": 16,
    "kubernetes.io/azure-disk": 16,
    "kubernetes.io/cinder": 256,
}
EBS_NITRO_FALLBACK = 25


class LimitSource(Enum):
    """Where a limit comes from."""

    CSINODE = "CSINode"
    ALLOCATABLE = "node.status.allocatable"
    OVERRIDE = "KUBE_MAX_PD_VOLS"
    FALLBACK = "fallback table"
    NONE = "no limit"
    MISSING = "driver not registered"


@dataclass(frozen=True, slots=True)
class Limit:
    """A limit and its source; no count means any number."""

    count: int | None
    source: LimitSource
    detail: str = ""

    @property
    def as_column(self) -> int:
        """The limit as a number to compare with."""
        return NO_LIMIT if self.count is None else min(self.count, NO_LIMIT)


def limit_of(driver: str, node: Node, csinode: CSINode | None, rules: VolumeRules) -> Limit:
    """How many volumes of a driver (or in-tree plugin) a node can attach."""
    listed = _from_csinode(driver, csinode)
    if listed is not None and listed.count is not None:
        return listed
    published = _from_allocatable(driver, node, rules)
    if published is not None:
        return published
    if driver in BY_PLUGIN_NAME:
        return _fallback(driver, node, rules)
    return listed or Limit(None, LimitSource.MISSING)


def _from_csinode(driver: str, csinode: CSINode | None) -> Limit | None:
    for registered in csinode.spec.drivers if csinode else ():
        if registered.name == driver:
            count = registered.allocatable.count if registered.allocatable else None
            source = LimitSource.NONE if count is None else LimitSource.CSINODE
            return Limit(count, source)
    return None


def _from_allocatable(driver: str, node: Node, rules: VolumeRules) -> Limit | None:
    if not rules.published_limits:
        return None
    for key in limit_keys(driver):
        written = node.status.allocatable.get(key)
        if written is not None:
            return Limit(max(quantity.value(written), 0), LimitSource.ALLOCATABLE, key)
    return None


def limit_keys(driver: str) -> tuple[str, ...]:
    """The allocatable keys under which a node may publish the limit of a driver or plugin."""
    plugin = BY_PLUGIN_NAME.get(driver) or BY_DRIVER.get(driver)
    keys = [] if driver in BY_PLUGIN_NAME else [csi_attach_limit_key(driver)]
    if plugin is not None and plugin.limit_suffix:
        keys += [f"{prefix}{plugin.limit_suffix}" for prefix in ATTACH_LIMIT_PREFIXES]
    return tuple(keys)


def _fallback(plugin: str, node: Node, rules: VolumeRules) -> Limit:
    if not rules.legacy_limits or plugin not in FALLBACKS:
        return Limit(None, LimitSource.NONE)
    if rules.max_volumes_override is not None:
        return Limit(rules.max_volumes_override, LimitSource.OVERRIDE)
    count = FALLBACKS[plugin]
    labels = node.metadata.labels
    instance_type = labels.get(INSTANCE_TYPE, labels.get(BETA_INSTANCE_TYPE))
    if plugin == "kubernetes.io/aws-ebs" and instance_type and EBS_NITRO_TYPE.match(instance_type):
        count = EBS_NITRO_FALLBACK
    return Limit(count, LimitSource.FALLBACK)
