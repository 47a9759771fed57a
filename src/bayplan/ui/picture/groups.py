"""Node groups: their nodes, sizes, limits and upcoming nodes.

Sources in order of preference: the cloud provider, a file with declared groups, the status
ConfigMap of an autoscaler, which has groups but not their nodes, and the labels by which clouds
mark the nodes of a pool. The row of a group names its source.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from bayplan.kube.nodes import Node
from bayplan.nodegroups import TemplateNodeInfo
from bayplan.nodegroups.templates import csi_limits
from bayplan.ui import texts
from bayplan.ui.picture.nodes import node_row, taint_text
from bayplan.ui.tables import Row, Tables

POOL_LABELS = (
    "simulation.bayplan.io/node-group",
    "eks.amazonaws.com/nodegroup",
    "alpha.eksctl.io/nodegroup-name",
    "cloud.google.com/gke-nodepool",
    "kubernetes.azure.com/agentpool",
    "agentpool",
    "karpenter.sh/nodepool",
    "kops.k8s.io/instancegroup",
    "doks.digitalocean.com/node-pool",
    "oke.oraclecloud.com/pool.name",
    "k8s.scaleway.com/pool-name",
)
"""Labels by which clouds mark the nodes of a pool."""
POOL_ANNOTATIONS = ("cluster.x-k8s.io/owner-name",)
"""The same for Cluster API: the owner of a node's machine."""
SOURCES = ("cloud", "declared", "status")
"""The sources of node groups, the preferred first."""
MAX_UPCOMING = 200
"""Maximum number of upcoming nodes of a group that are drawn; the others are counted."""


@dataclass(frozen=True, slots=True)
class GroupFacts:
    """What a source knows of a group; None is unknown."""

    id: str
    source: str
    """The name of the source."""
    min: int | None = None
    max: int | None = None
    target: int | None = None
    price: float | None = None
    """The price of a node an hour."""
    selector: Mapping[str, str] = field(default_factory=dict)
    """Labels that its nodes have."""
    template: TemplateNodeInfo | None = None
    """The template of its next node."""
    instances: Mapping[str, bool] | None = None
    """By provider ID its instances, and whether each is still being created."""


class Groups:
    """All node groups, with their nodes and upcoming nodes."""

    def __init__(self, tables: Tables, node_of: Callable[[str], Node | None]) -> None:
        self._tables = tables
        self._node_of = node_of
        self._by_source: dict[str, dict[str, GroupFacts]] = {}
        """By source, the preferred first, and by group."""
        self._by_instance: dict[str, str] = {}
        self._of: dict[str, str] = {}
        self._nodes: defaultdict[str, set[str]] = defaultdict(set)
        self._pool_source: dict[str, str] = {}
        self._provider_ids: dict[str, str] = {}
        self._upcoming_ids: set[str] = set()
        self._drawn_attach_limits: set[str] = set()
        self.dirty = True

    def update(self, source: str, facts: Iterable[GroupFacts]) -> bool:
        """Replace the facts of a source; return whether nodes may have changed their groups."""
        found = {one.id: one for one in facts}
        before = self._by_source.get(source, {})
        if found == before and source in self._by_source:
            return False
        by_source = {**self._by_source, source: found}
        self._by_source = {one: by_source[one] for one in SOURCES if one in by_source}
        known = {
            provider_id: group.id
            for groups in self._by_source.values()
            for group in groups.values()
            for provider_id in group.instances or ()
        }
        moved = known != self._by_instance or _selectors(found) != _selectors(before)
        self._by_instance = known
        self.dirty = True
        return moved

    def assign(self, node: Node) -> str:
        """Return the group of a node; empty if it is unknown."""
        found, source = self._group_of(node)
        moved = self._of.get(node.name) != found
        if moved:
            self.forget(node.name)
            self._of[node.name] = found
            self._nodes[found].add(node.name)
        if source and self._pool_source.get(found) != source:
            self._pool_source[found], moved = source, True
        if self._provider_ids.get(node.name) != node.spec.provider_id:
            self._provider_ids[node.name], moved = node.spec.provider_id, True
        if moved or self._upcoming_ids:  # upcoming nodes look like the others
            self.dirty = True
        return texts.identity(found)

    def forget(self, node: str) -> None:
        """Forget a deleted node."""
        self._provider_ids.pop(node, None)
        group = self._of.pop(node, None)
        if group is not None:
            self._nodes[group].discard(node)
            if not self._nodes[group]:
                del self._nodes[group]
            self.dirty = True

    def write(self) -> None:
        """Write the rows of groups and of their upcoming nodes."""
        self.dirty = False
        upcoming_rows: dict[str, Row] = {}
        rows = []
        for name in self._names():
            facts = self._facts(name)
            upcoming, count = self._upcoming(name, facts)
            upcoming_rows.update((str(row[0]), row) for row in upcoming)
            rows.append(self._row(name, facts, count))
        self._tables.replace("groups", rows)
        for row in upcoming_rows.values():
            self._tables.set("nodes", row)
        for name in self._upcoming_ids - upcoming_rows.keys():
            if self._is_upcoming(name):
                self._tables.drop("nodes", name)
        self._upcoming_ids = set(upcoming_rows)
        self._write_attach_limits(upcoming_rows)

    def upcoming_nodes(self) -> dict[str, list[str]]:
        """Return the ids of the drawn upcoming nodes, by group."""
        found: dict[str, list[str]] = {}
        for name in filter(self._is_upcoming, self._upcoming_ids):
            found.setdefault(str(self._tables["nodes"][name][1]), []).append(name)
        return {group: sorted(names) for group, names in found.items()}

    def _is_upcoming(self, name: str) -> bool:
        """Return whether a drawn node is upcoming."""
        row = self._tables["nodes"].get(name)
        return row is not None and row[9] is True

    def _names(self) -> list[str]:
        known = {name for groups in self._by_source.values() for name in groups}
        return sorted((known | set(self._nodes)) - {""})

    def _facts(self, name: str) -> list[GroupFacts]:
        """Return the facts of a group, the preferred source first."""
        return [groups[name] for groups in self._by_source.values() if name in groups]

    def _row(self, name: str, facts: list[GroupFacts], upcoming: int) -> Row:
        size = len(self._nodes.get(name, ()))
        target = _first(one.target for one in facts)
        sources = [one.source for one in facts] or [self._pool_source.get(name, "")]
        return [
            texts.identity(name),
            texts.name(name),
            size,
            target if target is not None else size,
            _first(one.min for one in facts),
            _first(one.max for one in facts),
            _first(one.price for one in facts),
            texts.name(", ".join(dict.fromkeys(sources))),
            upcoming,
        ]

    def _upcoming(self, name: str, facts: list[GroupFacts]) -> tuple[list[Row], int]:
        """Return the rows of upcoming nodes of a group, and their number."""
        instances = next((one.instances for one in facts if one.instances is not None), None)
        if instances is not None:
            there = set(self._provider_ids.values())
            coming = sorted(key for key, new in instances.items() if new and key not in there)
        else:
            target = next((one.target for one in facts if one.target is not None), 0)
            missing = max(0, target - len(self._nodes.get(name, ())))
            coming = [f"{name} upcoming {number + 1}" for number in range(min(missing, 10_000))]
        template = next((one.template for one in facts if one.template is not None), None)
        like = template.node if template is not None else self._sample(name)
        return [_upcoming_row(one, name, like) for one in coming[:MAX_UPCOMING]], len(coming)

    def _sample(self, name: str) -> Node | None:
        nodes = self._nodes.get(name)
        return self._node_of(min(nodes)) if nodes else None

    def _write_attach_limits(self, upcoming_rows: Mapping[str, Row]) -> None:
        wanted = {str(row[0]): row for row in self._upcoming_attach_limits(upcoming_rows)}
        for row in wanted.values():
            self._tables.set("rails", row)
        for name in self._drawn_attach_limits - wanted.keys():
            there = self._tables["rails"].get(name)
            if there is not None and there[5] == TEMPLATE:
                self._tables.drop("rails", name)
        self._drawn_attach_limits = set(wanted)

    def _upcoming_attach_limits(self, upcoming_rows: Mapping[str, Row]) -> Iterator[Row]:
        for name, row in upcoming_rows.items():
            facts = self._facts(str(row[1]))
            template = next((one.template for one in facts if one.template is not None), None)
            limits = csi_limits(template.csi_node) if template is not None else {}
            for driver, limit in sorted(limits.items()):
                row_id = texts.identity(f"{name} {driver}")
                yield [row_id, name, texts.name(driver), 0, limit, TEMPLATE, False]

    def _group_of(self, node: Node) -> tuple[str, str]:
        """Return the group of a node, and the label by which it was found, if any."""
        by_instance = (
            self._by_instance.get(node.spec.provider_id) if node.spec.provider_id else None
        )
        if by_instance is not None:
            return by_instance, ""
        labels, annotations = node.metadata.labels, node.metadata.annotations
        for groups in self._by_source.values():
            for one in groups.values():
                if one.selector and one.selector.items() <= labels.items():
                    return one.id, ""
        for key in POOL_LABELS:
            if labels.get(key):
                return labels[key], f"label {key}"
        for key in POOL_ANNOTATIONS:
            if annotations.get(key):
                return annotations[key], f"annotation {key}"
        return "", ""


TEMPLATE = "group template"
STATE = "node.kubernetes.io/"
"""Prefix of taints that report the status of a node."""


def _upcoming_row(name: str, group: str, like: Node | None) -> Row:
    """Return the row of an upcoming node, from its template or another node of the group."""
    row = node_row(like if like is not None else Node(), texts.identity(group), "upcoming", ())
    row[0], row[3], row[4], row[9] = texts.identity(name), "Unknown", False, True
    row[5] = (
        [taint_text(one) for one in like.spec.taints if not one.key.startswith(STATE)]
        if like
        else []
    )
    return row


def _selectors(groups: Mapping[str, GroupFacts]) -> list[tuple[str, Mapping[str, str]]]:
    return [(one.id, one.selector) for one in groups.values() if one.selector]


def _first(values: Iterable[int | float | None]) -> int | float | None:
    return next((value for value in values if value is not None), None)
