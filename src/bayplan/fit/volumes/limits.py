"""How many volumes a node can attach for a driver, and the source of that limit.

In this order: the driver's own limit in the node's CSINode; the node's `status.allocatable`, under
the keys that nodes have published limits by (gate AttachVolumeLimit); and, for plugins that no CSI
driver serves on this node, the fallback table, which KUBE_MAX_PD_VOLS replaces.

An amount of `status.allocatable` that cannot be a limit is passed over. A limit was intended all
the same, so a driver without another limit is not taken to have none: it gets the fallback of the
plugin that it took over, and a limit of 0 if it took over none.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache

from bayplan.fit.profile import VolumeRules
from bayplan.fit.volumes.identity import BY_DRIVER, BY_PLUGIN_NAME
from bayplan.kube.attachlimits import attach_limit_keys, parse_attach_limit, published_rules
from bayplan.kube.labels import instance_type
from bayplan.kube.nodes import Node
from bayplan.kube.resources import ATTACH_LIMIT_PREFIXES
from bayplan.kube.storage import CSINode

NO_LIMIT = 1 << 40
"""Stands for "any number" in a column of limits."""
EBS_NITRO_TYPE = re.compile(r"^[cmr]5.*|t3|z1d")
EBS = "kubernetes.io/aws-ebs"
FALLBACKS = {
    EBS: 39,
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
    TEMPLATE = "group template"
    UNREADABLE = "unreadable limit"
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
    if published is not None and published.source is not LimitSource.UNREADABLE:
        return published
    if driver in BY_PLUGIN_NAME:
        return _fallback(driver, node, rules)
    if published is None:
        return listed or Limit(None, LimitSource.MISSING)
    took_over = BY_DRIVER.get(driver)
    if took_over is None or took_over.name not in FALLBACKS:
        return published
    return _fallback(took_over.name, node, rules)


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
    published = node.status.allocatable
    written = {
        key: parse_attach_limit(published[key]) for key in limit_keys(driver) if key in published
    }
    counts = [(count, key) for key, count in written.items() if count is not None]
    if counts:
        count, key = min(counts, key=lambda one: one[0])
        return Limit(count, LimitSource.ALLOCATABLE, key)
    return next((Limit(0, LimitSource.UNREADABLE, key) for key in written), None)


@lru_cache(1024)
def limit_keys(driver: str) -> tuple[str, ...]:
    """The allocatable keys under which a node may publish the limit of a driver or plugin."""
    plugin = BY_PLUGIN_NAME.get(driver)
    if plugin is None:
        return attach_limit_keys(driver)
    ends = [plugin.limit_suffix] if plugin.limit_suffix else []
    return tuple(f"{prefix}{end}" for prefix in ATTACH_LIMIT_PREFIXES for end in ends)


def _fallback(plugin: str, node: Node, rules: VolumeRules) -> Limit:
    if not rules.legacy_limits or plugin not in FALLBACKS:
        return Limit(None, LimitSource.NONE)
    if rules.max_volumes_override is not None:
        return Limit(rules.max_volumes_override, LimitSource.OVERRIDE)
    nitro = plugin == EBS and EBS_NITRO_TYPE.search(instance_type(node.metadata.labels))
    return Limit(EBS_NITRO_FALLBACK if nitro else FALLBACKS[plugin], LimitSource.FALLBACK)


def row_of(driver: str, node: Node, limit: Limit) -> str:
    """Which row of which table a limit comes from; empty if it does not come from one we know."""
    if limit.source is LimitSource.ALLOCATABLE:
        return published_rules(node.metadata.annotations).get(limit.detail, "")
    if limit.source is not LimitSource.FALLBACK:
        return ""
    plugin = BY_PLUGIN_NAME.get(driver) or BY_DRIVER[driver]
    if plugin.name != EBS:
        return f"{plugin.limit_suffix}: all types"
    nitro = f"types {EBS_NITRO_TYPE.pattern}"
    return f"aws-ebs: {nitro if limit.count == EBS_NITRO_FALLBACK else 'all other types'}"
