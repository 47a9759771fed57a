"""Node group options: what could be scaled up, and what is; what expanders choose between.

Each group that could help is a `NodeGroupOption`, with its estimate. An expander chooses:
`NewNodes` are nodes of one group with the pods that they are for. Most expanders choose one option
as it stands; a mix makes several `NewNodes`, which count on each other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from bayplan.autoscaler.plan import Mixed, Note
from bayplan.autoscaler.templates import NodeGroupView
from bayplan.fit import Snapshot
from bayplan.fit.batches import Group, Option, Template
from bayplan.fit.batches.fill import Placed
from bayplan.kube.pods import Pod


@dataclass(frozen=True, slots=True, eq=False)
class NodeGroupOption:
    """A group that could help, and how."""

    view: NodeGroupView
    template: Template
    option: Option
    nodes: int
    """How many would be bought: what the option takes, or the whole of an all-or-nothing group."""
    most: int
    """How many may be bought."""

    @property
    def price(self) -> float | None:
        """What they cost an hour; None if nobody can say."""
        return None if self.view.price is None else self.view.price * self.nodes

    def purchase(self) -> NewNodes:
        """The candidate, bought as it stands."""
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
    placed: tuple[Placed, ...] = ()
    """Pods that it counts on finding a place on nodes which are there."""
    order: tuple[tuple[int, Pod], ...] = ()
    """The pods of the new nodes by node number, each fitting once all before it are there; if
    nothing is said, node by node.
    """

    @property
    def helped(self) -> int:
        """How many pods the new nodes are for."""
        return sum(map(len, self.pods))

    def everybody(self) -> Iterator[Pod]:
        """The pods of the new nodes, and those that are counted on to find a place."""
        yield from (pod for on_node in self.pods for pod in on_node)
        yield from (pod for pod, _ in self.placed)

    def in_order(self) -> Iterator[tuple[int, Pod]]:
        """The number of a new node, and a pod for it, one after another."""
        if self.order:
            return iter(self.order)
        return ((number, pod) for number, pods in enumerate(self.pods) for pod in pods)


@dataclass(frozen=True, slots=True, eq=False)
class ExpanderRequest:
    """What an expander is asked: which of these, for these pods."""

    snapshot: Snapshot
    """The cluster with all that is on its way; an expander may fork it."""
    groups: tuple[Group, ...]
    """The waiting pods by likeness, those that fit nodes which are there included."""
    candidates: tuple[NodeGroupOption, ...]
    room: int | None = None
    """How many more nodes the whole cluster may have; None is any number."""


@dataclass(frozen=True, slots=True, eq=False)
class ExpanderChoice:
    """What an expander answers: purchases, each of which counts on those before it."""

    purchases: Sequence[NewNodes]
    notes: tuple[Note, ...] = ()
    mixed: Mixed | None = None
    """If groups were mixed, how well."""


class Expander(Protocol):
    """Chooses what is bought."""

    def choose(self, question: ExpanderRequest) -> ExpanderChoice:
        """What to buy, of at least one candidate; nothing is changed."""
        ...
