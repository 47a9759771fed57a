"""Which nodes can reach a volume: its node affinity, and the zone labels of volumes older than
that.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from bayplan.fit.volumes.identity import MULTI_ZONE_DELIMITER, in_tree_volume
from bayplan.kube.labels import BETA_REGION, BETA_ZONE, REGION, ZONE
from bayplan.kube.meta import Labels
from bayplan.kube.nodes import Node, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from bayplan.kube.selectors import NodeSelectorMatcher, compile_node_selector
from bayplan.kube.storage import CSINode, PersistentVolume

ZONE_LABELS = (BETA_ZONE, BETA_REGION, ZONE, REGION)
NEWER_LABEL = {BETA_ZONE: ZONE, BETA_REGION: REGION}
MIGRATED_PLUGINS = "storage.alpha.kubernetes.io/migrated-plugins"


@dataclass(frozen=True, slots=True)
class Reach:
    """The nodes that can reach a bound volume."""

    affinity: NodeSelectorMatcher | None
    plugin: str = ""
    migrated_affinity: NodeSelectorMatcher | None = None
    """What holds instead on nodes where the in-tree plugin has been migrated."""

    def includes(self, node: Node, csinode: CSINode | None) -> bool:
        """Whether a node is one of them."""
        migrated = self.plugin and self.plugin in migrated_plugins(csinode)
        affinity = self.migrated_affinity if migrated else self.affinity
        return affinity is None or affinity.matches(node)


@dataclass(frozen=True, slots=True)
class ZoneRequirement:
    """A zone or region label of a bound volume, and the values it allows."""

    label: str
    values: frozenset[str]

    def met_by(self, node: Node) -> bool:
        """Whether a node has one of the values, under the label or its newer name."""
        labels = node.metadata.labels
        value = labels.get(self.label)
        if value is None:
            value = labels.get(NEWER_LABEL.get(self.label, self.label))
        return value is not None and value in self.values


def migrated_plugins(csinode: CSINode | None) -> list[str]:
    """The in-tree plugins that a node has handed over to CSI drivers."""
    if csinode is None:
        return []
    return csinode.metadata.annotations.get(MIGRATED_PLUGINS, "").split(",")


def reach_of(pv: PersistentVolume) -> Reach:
    """The nodes that can reach a volume."""
    required = pv.spec.node_affinity.required if pv.spec.node_affinity else None
    affinity = compile_node_selector(required) if required else None
    in_tree = None if pv.spec.csi else in_tree_volume(pv.spec, pv.metadata.labels)
    if in_tree is None:
        return Reach(affinity)
    moved = _translated(pv, required, in_tree.plugin.topology_key)
    return Reach(affinity, in_tree.plugin.name, compile_node_selector(moved) if moved else None)


def zone_requirements(pv: PersistentVolume) -> tuple[ZoneRequirement, ...]:
    """The zone and region labels of a volume."""
    labels = pv.metadata.labels
    return tuple(
        ZoneRequirement(label, _zones(labels[label])) for label in ZONE_LABELS if labels.get(label)
    )


def zone_labels(pv: PersistentVolume) -> Labels:
    """The labels of zones and regions that a volume's affinity, or its own labels, ask for."""
    labels = {need.label: min(need.values) for need in zone_requirements(pv)}
    required = pv.spec.node_affinity.required if pv.spec.node_affinity else None
    for term in required.node_selector_terms[:1] if required else ():
        for e in term.match_expressions:
            is_zone = e.key in ZONE_LABELS or e.key.endswith(("/zone", "/region"))
            if is_zone and e.operator == "In" and e.values:
                labels[e.key] = e.values[0]
    return labels


def _zones(value: str) -> frozenset[str]:
    return frozenset(part.strip() for part in value.split(MULTI_ZONE_DELIMITER))


def _translated(
    pv: PersistentVolume, required: NodeSelector | None, csi_key: str | None
) -> NodeSelector | None:
    """An in-tree volume's affinity as its CSI driver would have written it."""
    if csi_key is None:
        return required
    zone_label, region_label = _zone_labels(pv, required)
    terms = required.node_selector_terms if required else []
    zones = sorted(_zones(pv.metadata.labels.get(zone_label, "")) - {""})
    if _has_values(terms, zone_label):
        terms = [_renamed(term, zone_label, csi_key) for term in terms]
    elif zones:
        wanted = NodeSelectorRequirement(key=csi_key, operator="In", values=zones)
        terms = [_with(term, wanted) for term in terms or [NodeSelectorTerm()]]
    if region_label == BETA_REGION and _has_values(terms, BETA_REGION):
        terms = [_renamed(term, BETA_REGION, REGION) for term in terms]
    return NodeSelector(node_selector_terms=terms) if terms else required


def _has_values(terms: list[NodeSelectorTerm], key: str) -> bool:
    return any(e.key == key and e.values for term in terms for e in term.match_expressions)


def _zone_labels(pv: PersistentVolume, required: NodeSelector | None) -> tuple[str, str]:
    terms = required.node_selector_terms if required else []
    mentioned = {e.key for term in terms for e in term.match_expressions}
    for names in (mentioned, pv.metadata.labels):
        if ZONE in names:
            return ZONE, REGION
        if BETA_ZONE in names:
            return BETA_ZONE, BETA_REGION
    return ZONE, REGION


def _renamed(term: NodeSelectorTerm, old: str, new: str) -> NodeSelectorTerm:
    expressions = [
        msgspec.structs.replace(e, key=new) if e.key == old else e for e in term.match_expressions
    ]
    return msgspec.structs.replace(term, match_expressions=expressions)


def _with(term: NodeSelectorTerm, wanted: NodeSelectorRequirement) -> NodeSelectorTerm:
    return msgspec.structs.replace(term, match_expressions=[*term.match_expressions, wanted])
