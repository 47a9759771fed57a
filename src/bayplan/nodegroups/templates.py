"""Templates of nodes that do not exist yet: a Node, and the CSINode that it will have.

Where a provider returns only a Node, its CSI limits are inside it: as an annotation such as
`ebs.csi.aws.com=25,efs.csi.aws.com=none`, or, without that annotation, as allocatable
`attachable-volumes-csi-<driver>`. A count of 0 is no volume at all; `none` is a driver without a
limit. A driver whose count cannot be read is left out, so that the autoscaler never relies on slots
that may not exist, and the problem is reported. A Node with neither has no CSINode: its drivers are
unknown.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from bayplan.kube.meta import ObjectMeta
from bayplan.kube.names import is_qualified_name
from bayplan.kube.nodes import Node
from bayplan.kube.quantity import QuantityError, value
from bayplan.kube.resources import csi_attach_limit_driver
from bayplan.kube.storage import CSINode, CSINodeDriver, CSINodeSpec, VolumeNodeResources

CSI_DRIVERS = "capacity.cluster-autoscaler.kubernetes.io/csi-driver"
_MAX_COUNT = 2**31 - 1
NO_LIMIT = "none"

Limits = dict[str, int | None]
"""By driver; None is a driver without a limit."""


@dataclass(frozen=True, slots=True)
class TemplateNodeInfo:
    """The next node of a group, ready and empty."""

    node: Node
    csi_node: CSINode | None = None
    """None if the drivers are unknown."""
    problems: tuple[str, ...] = ()
    """Limits of the group that cannot be read."""
    estimated: frozenset[str] = frozenset()
    """The drivers whose limit is computed, not declared."""


def template_of(node: Node) -> TemplateNodeInfo:
    """Build the template of a Node, with the CSI limits that the Node carries."""
    text = node.metadata.annotations.get(CSI_DRIVERS)
    limits, problems = _allocatable_limits(node) if text is None else read_limits(text)
    if text is None and not limits and not problems:
        return TemplateNodeInfo(node)
    return TemplateNodeInfo(node, build_csi_node(node.name, limits), problems)


def build_csi_node(name: str, limits: Mapping[str, int | None]) -> CSINode:
    """Build the CSINode of a node with exactly these drivers."""
    drivers = [_driver(driver, limits[driver], name) for driver in sorted(limits)]
    return CSINode(metadata=ObjectMeta(name=name), spec=CSINodeSpec(drivers=drivers))


def csi_limits(csi_node: CSINode | None) -> Limits:
    """Return the limits in a CSINode."""
    drivers = csi_node.spec.drivers if csi_node is not None else []
    return {one.name: one.allocatable.count if one.allocatable else None for one in drivers}


def limits_text(limits: Mapping[str, int | None]) -> str:
    """Format limits by driver as the annotation's value."""
    pairs = sorted(limits.items())
    return ",".join(f"{name}={NO_LIMIT if count is None else count}" for name, count in pairs)


def read_limits(text: str) -> tuple[Limits, tuple[str, ...]]:
    """Parse the annotation's value: the limits, and the problems of what cannot be read."""
    limits: Limits = {}
    problems: list[str] = []
    seen: set[str] = set()
    for entry in filter(None, (part.strip() for part in text.split(","))):
        name, _, count = (part.strip() for part in entry.partition("="))
        problem = "the driver is listed twice" if name in seen else _problem(name, count)
        seen.add(name)
        if problem:
            limits.pop(name, None)
            problems.append(f"{CSI_DRIVERS}: {entry[:100]!r}: {problem}")
        else:
            limits[name] = None if count == NO_LIMIT else int(count)
    return limits, tuple(problems)


def parse_limits(counts: Mapping[str, str], source: str) -> tuple[Limits, tuple[str, ...]]:
    """Parse counts by driver: the limits, and the problems of what cannot be read."""
    limits: Limits = {}
    problems: list[str] = []
    for name, count in counts.items():
        if problem := _problem(name, count):
            problems.append(f"{source}{name[:100]}: {count[:100]!r}: {problem}")
        else:
            limits[name] = None if count == NO_LIMIT else int(count)
    return limits, tuple(problems)


def _problem(name: str, count: str) -> str:
    if not is_qualified_name(name):
        return "this is not a driver name"
    if count == NO_LIMIT or _is_count(count):
        return ""
    return "the limit must be a whole number, or none"


def _is_count(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= 10 and int(text) <= _MAX_COUNT


def _allocatable_limits(node: Node) -> tuple[Limits, tuple[str, ...]]:
    limits: Limits = {}
    problems: list[str] = []
    for key, amount in node.status.allocatable.items():
        driver = csi_attach_limit_driver(key)
        if not driver:
            continue
        try:
            count = value(amount)
        except QuantityError:
            count = -1
        if 0 <= count <= _MAX_COUNT:
            limits[driver] = count
        else:
            problems.append(f"allocatable {key}: {amount!r} is not a count")
    return limits, tuple(problems)


def _driver(name: str, limit: int | None, node: str) -> CSINodeDriver:
    count = None if limit is None else VolumeNodeResources(count=limit)
    return CSINodeDriver(name=name, node_id=node, allocatable=count)
