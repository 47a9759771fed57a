"""Node group options: the groups that could be scaled up, which expanders choose from.

Each group that would help is a `NodeGroupOption`, with its estimate. An expander returns
`NewNodes`: new nodes of one group with the pods that they are for. Most expanders choose one option
unchanged; a mix returns several `NewNodes`, which depend on each other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from bayplan.autoscaler.plan import ExpanderNote, MixResult
from bayplan.autoscaler.templates import NodeGroupView
from bayplan.fit import Snapshot
from bayplan.fit.batches import NodeTemplate, Option, PodEquivalenceGroup
from bayplan.fit.batches.fill import PodPlacement
from bayplan.kube.pods import Pod


@dataclass(frozen=True, slots=True, eq=False)
class NodeGroupOption:
    """A group that could be scaled up, with its estimate."""

    view: NodeGroupView
    template: NodeTemplate
    option: Option
    nodes: int
    """The number of new nodes: the estimate, or all of a zero-or-max group."""
    most: int
    """The maximum number of new nodes."""

    @property
    def price(self) -> float | None:
        """The hourly price of the new nodes; None if unknown."""
        return None if self.view.price is None else self.view.price * self.nodes

    def new_nodes(self) -> NewNodes:
        """The new nodes of the option, unchanged."""
        found = self.option.estimate
        pods = tuple(map(tuple, found.by_node()))
        spare = ((),) * (self.nodes - len(pods))
        order = tuple(found.placements())
        return NewNodes(self.view, self.nodes, pods + spare, self.option.placed, order)


@dataclass(frozen=True, slots=True, eq=False)
class NewNodes:
    """New nodes of a group."""

    view: NodeGroupView
    nodes: int
    pods: tuple[tuple[Pod, ...], ...]
    """For each new node, the pods that it is for."""
    placed: tuple[PodPlacement, ...] = ()
    """Pods that it expects to fit existing nodes."""
    order: tuple[tuple[int, Pod], ...] = ()
    """The pods by node number, in an order in which each fits; if empty, node by node."""

    @property
    def helped(self) -> int:
        """The number of pods that the new nodes are for."""
        return sum(map(len, self.pods))

    def all_pods(self) -> Iterator[Pod]:
        """Yield the pods of the new nodes, and those expected to fit existing nodes."""
        yield from (pod for on_node in self.pods for pod in on_node)
        yield from (pod for pod, _ in self.placed)

    def in_order(self) -> Iterator[tuple[int, Pod]]:
        """Yield the number of a new node and a pod for it, in order."""
        if self.order:
            return iter(self.order)
        return ((number, pod) for number, pods in enumerate(self.pods) for pod in pods)


@dataclass(frozen=True, slots=True, eq=False)
class ExpanderRequest:
    """The input of an expander: the options, for these pods."""

    snapshot: Snapshot
    """The cluster with all upcoming nodes; an expander may fork it."""
    groups: tuple[PodEquivalenceGroup, ...]
    """The pending pods by equivalence class, including those that fit existing nodes."""
    options: tuple[NodeGroupOption, ...]
    max_new_nodes: int | None = None
    """The maximum number of new nodes in the cluster; None is no limit."""


@dataclass(frozen=True, slots=True, eq=False)
class ExpanderChoice:
    """The choice of an expander: new nodes, each of which depends on those before it."""

    new_nodes: Sequence[NewNodes]
    notes: tuple[ExpanderNote, ...] = ()
    mixed: MixResult | None = None
    """The quality of the mix, if groups were mixed."""


class Expander(Protocol):
    """Chooses which groups are scaled up."""

    def choose(self, request: ExpanderRequest) -> ExpanderChoice:
        """Choose from at least one option; the snapshot is left unchanged."""
        ...
