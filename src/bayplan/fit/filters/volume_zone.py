"""VolumeZone: a bound volume's zone and region labels must suit the node, if the node has any."""

from __future__ import annotations

from bayplan.fit.filters.base import Filter, NodeSetFilter, Question
from bayplan.fit.volumes.topology import ZONE_LABELS
from bayplan.kube.nodes import Node

NAME = "VolumeZone"
REASON = "node(s) had no available volume zone"


def compile_filter(question: Question) -> Filter | None:
    """The filter, if a bound volume has such labels."""
    zones = question.needs.zones
    if not zones:
        return None

    def suits(node: Node) -> bool:
        if not any(label in node.metadata.labels for label in ZONE_LABELS):
            return True
        return all(zone.met_by(node) for zone in zones)

    nodes = question.cluster.node_sets.where((NAME, zones), suits)
    return NodeSetFilter(NAME, nodes, REASON)
