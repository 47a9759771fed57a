"""Node groups as quays: which node is of which, how large each is and may be, what is on its way.

A cloud that can be asked says it best; then what somebody declared in a file; then the status that
an autoscaler writes, which names groups but not their nodes; at last the labels by which clouds
mark the nodes of a pool. What each group's row rests on is said in it.
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
"""The same for Cluster API, which names the set that made a node's machine."""
SPEAKERS = ("cloud", "declared", "status")
"""Who may say something of groups, the best first."""
MOST_GHOSTS = 200
"""So many nodes on their way are drawn for a group; the others are counted."""


@dataclass(frozen=True, slots=True)
class GroupFacts:
    """What somebody says of a group; None is what is not said."""

    id: str
    source: str
    """Who says it."""
    min: int | None = None
    max: int | None = None
    target: int | None = None
    price: float | None = None
    """Of a node, an hour."""
    selector: Mapping[str, str] = field(default_factory=dict)
    """Labels that its nodes have."""
    template: TemplateNodeInfo | None = None
    """What its next node will be."""
    instances: Mapping[str, bool] | None = None
    """By provider ID its instances, and whether each is still on its way."""


class Groups:
    """All groups, with their nodes and ghosts."""

    def __init__(self, tables: Tables, node_of: Callable[[str], Node | None]) -> None:
        self._tables = tables
        self._node_of = node_of
        self._said: dict[str, dict[str, GroupFacts]] = {}
        """By who says it, the best first, and by group."""
        self._by_instance: dict[str, str] = {}
        self._of: dict[str, str] = {}
        self._nodes: defaultdict[str, set[str]] = defaultdict(set)
        self._pool_source: dict[str, str] = {}
        self._provider_ids: dict[str, str] = {}
        self._ghosts: set[str] = set()
        self._ghost_rails_drawn: set[str] = set()
        self.dirty = True

    def say(self, who: str, facts: Iterable[GroupFacts]) -> bool:
        """Take all that one source says of groups; whether nodes may be of other groups now."""
        said = {one.id: one for one in facts}
        before = self._said.get(who, {})
        if said == before and who in self._said:
            return False
        told = {**self._said, who: said}
        self._said = {one: told[one] for one in SPEAKERS if one in told}
        known = {
            provider_id: group.id
            for told in self._said.values()
            for group in told.values()
            for provider_id in group.instances or ()
        }
        moved = known != self._by_instance or _selectors(said) != _selectors(before)
        self._by_instance = known
        self.dirty = True
        return moved

    def assign(self, node: Node) -> str:
        """The group of a node; empty if nobody says."""
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
        if moved or self._ghosts:  # ghosts look like their fellows
            self.dirty = True
        return texts.identity(found)

    def forget(self, node: str) -> None:
        """A node is gone."""
        self._provider_ids.pop(node, None)
        group = self._of.pop(node, None)
        if group is not None:
            self._nodes[group].discard(node)
            if not self._nodes[group]:
                del self._nodes[group]
            self.dirty = True

    def write(self) -> None:
        """Write the rows of groups, and their ghosts among the nodes."""
        self.dirty = False
        ghosts: dict[str, Row] = {}
        rows = []
        for name in self._names():
            facts = self._facts(name)
            upcoming, count = self._upcoming(name, facts)
            ghosts.update((str(row[0]), row) for row in upcoming)
            rows.append(self._row(name, facts, count))
        self._tables.replace("groups", rows)
        for row in ghosts.values():
            self._tables.set("nodes", row)
        for name in self._ghosts - ghosts.keys():
            if self._is_ghost(name):
                self._tables.drop("nodes", name)
        self._ghosts = set(ghosts)
        self._write_rails(ghosts)

    def ghosts(self) -> dict[str, list[str]]:
        """By group the ids of its ghosts, as they are drawn."""
        found: dict[str, list[str]] = {}
        for name in filter(self._is_ghost, self._ghosts):
            found.setdefault(str(self._tables["nodes"][name][1]), []).append(name)
        return {group: sorted(names) for group, names in found.items()}

    def _is_ghost(self, name: str) -> bool:
        """Whether a node of that name is drawn, and is not there yet."""
        row = self._tables["nodes"].get(name)
        return row is not None and row[9] is True

    def _names(self) -> list[str]:
        said = {name for told in self._said.values() for name in told}
        return sorted((said | set(self._nodes)) - {""})

    def _facts(self, name: str) -> list[GroupFacts]:
        """All that is said of a group, the best source first."""
        return [told[name] for told in self._said.values() if name in told]

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
        """The ghosts of a group, and how many there are in all."""
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
        return [_ghost(one, name, like) for one in coming[:MOST_GHOSTS]], len(coming)

    def _sample(self, name: str) -> Node | None:
        nodes = self._nodes.get(name)
        return self._node_of(min(nodes)) if nodes else None

    def _write_rails(self, ghosts: Mapping[str, Row]) -> None:
        wanted = {str(row[0]): row for row in self._ghost_rails(ghosts)}
        for row in wanted.values():
            self._tables.set("rails", row)
        for name in self._ghost_rails_drawn - wanted.keys():
            there = self._tables["rails"].get(name)
            if there is not None and there[5] == TEMPLATE:
                self._tables.drop("rails", name)
        self._ghost_rails_drawn = set(wanted)

    def _ghost_rails(self, ghosts: Mapping[str, Row]) -> Iterator[Row]:
        for name, ghost in ghosts.items():
            facts = self._facts(str(ghost[1]))
            template = next((one.template for one in facts if one.template is not None), None)
            limits = csi_limits(template.csi_node) if template is not None else {}
            for driver, limit in sorted(limits.items()):
                rail = texts.identity(f"{name} {driver}")
                yield [rail, name, texts.name(driver), 0, limit, TEMPLATE, False]

    def _group_of(self, node: Node) -> tuple[str, str]:
        """The group of a node, and the mark by which it was found if it is a pool's."""
        by_instance = (
            self._by_instance.get(node.spec.provider_id) if node.spec.provider_id else None
        )
        if by_instance is not None:
            return by_instance, ""
        labels, annotations = node.metadata.labels, node.metadata.annotations
        for told in self._said.values():
            for one in told.values():
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
"""What the keys of taints begin with that tell of a node's state, and of no other node's."""


def _ghost(name: str, group: str, like: Node | None) -> Row:
    """A node that is not there yet, drawn like its template or its fellows."""
    row = node_row(like if like is not None else Node(), texts.identity(group), "on its way", ())
    row[0], row[3], row[4], row[9] = texts.identity(name), "Unknown", False, True
    row[5] = (
        [taint_text(one) for one in like.spec.taints if not one.key.startswith(STATE)]
        if like
        else []
    )
    return row


def _selectors(said: Mapping[str, GroupFacts]) -> list[tuple[str, Mapping[str, str]]]:
    return [(one.id, one.selector) for one in said.values() if one.selector]


def _first(values: Iterable[int | float | None]) -> int | float | None:
    return next((value for value in values if value is not None), None)
