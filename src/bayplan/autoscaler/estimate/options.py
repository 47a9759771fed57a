"""What could be bought, and what is: the values between estimation, expanders and the loop.

Each group that could help is a `Candidate`, with its best option. An expander chooses: a `Purchase`
is nodes of one group with the pods that they are for. Most expanders make one purchase, of one
candidate as it stands; a mix makes several, which count on each other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from bayplan.autoscaler.clusterview import GroupView
from bayplan.autoscaler.plan import Mixed, Note
from bayplan.fit import Snapshot
from bayplan.fit.batches import Group, Option, Template
from bayplan.fit.batches.fill import Placed
from bayplan.kube.pods import Pod


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """A group that could help, and how."""

    view: GroupView
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

    def purchase(self) -> Purchase:
        """The candidate, bought as it stands."""
        found = self.option.estimate
        pods = tuple(map(tuple, found.by_node()))
        spare = ((),) * (self.nodes - len(pods))
        order = tuple(found.placements())
        return Purchase(self.view, self.nodes, pods + spare, self.option.placed, order)


@dataclass(frozen=True, slots=True, eq=False)
class Purchase:
    """New nodes of a group."""

    view: GroupView
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
class Question:
    """What an expander is asked: which of these, for these pods."""

    snapshot: Snapshot
    """The cluster with all that is on its way; an expander may fork it."""
    groups: tuple[Group, ...]
    """The waiting pods by likeness, those that fit nodes which are there included."""
    candidates: tuple[Candidate, ...]
    room: int | None = None
    """How many more nodes the whole cluster may have; None is any number."""


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """What an expander answers: purchases, each of which counts on those before it."""

    purchases: Sequence[Purchase]
    notes: tuple[Note, ...] = ()
    mixed: Mixed | None = None
    """If groups were mixed, how well."""


class Expander(Protocol):
    """Chooses what is bought."""

    def choose(self, question: Question) -> Choice:
        """What to buy, of at least one candidate; nothing is changed."""
        ...
