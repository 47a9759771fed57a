"""What a plugin is asked when a person wants to know more: a trial, and what it gives back.

A trial is one pod, one node that refuses it, and what can be known and tried there. A plugin tells
the facts behind its refusal, proposes steps that could lift it, and says what lifting it costs at
the least, so that thousands of nodes are a few groups. Explanations hold the trials; plugins know
only this.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from bayplan.fit.fixes import Step
from bayplan.fit.plugins.base import Filter
from bayplan.fit.refusal import Refusal
from bayplan.fit.state.cluster import Cluster
from bayplan.fit.state.columns import SlotArray
from bayplan.fit.state.pods import PodRecord
from bayplan.kube.nodes import Node
from bayplan.kube.pods import Pod
from bayplan.kube.storage import CSINode

F = TypeVar("F", bound=Filter)
T = TypeVar("T")
HOPELESS = 100.0
"""What lifting a refusal costs for which there is no step."""


class Trial(Protocol):
    """A refusal in a cluster as it now is (steps may have been taken already)."""

    @property
    def pod(self) -> Pod:
        """The pod as it now is."""

    @property
    def name(self) -> str:
        """The node's name."""

    @property
    def refusal(self) -> Refusal:
        """What the node says of the pod."""

    @property
    def cluster(self) -> Cluster:
        """The cluster as it now is."""

    @property
    def slot(self) -> int:
        """The node's slot."""

    @property
    def node(self) -> Node:
        """The node as it now is."""

    @property
    def csinode(self) -> CSINode | None:
        """The node's CSINode as it now is."""

    @property
    def filters(self) -> tuple[Filter, ...]:
        """The pod's filters."""

    @property
    def refusing(self) -> Filter | None:
        """The filter that refuses, if it has a say of the pod."""

    def filter(self, kind: type[F]) -> F | None:
        """The pod's filter of a kind, if it has one."""

    def once(self, key: Hashable, work_out: Callable[[], T]) -> T:
        """What is the same for many nodes, worked out once."""

    def priority(self, pod: Pod) -> int:
        """How important a pod is."""

    def refusal_of(self, pod: Pod) -> Refusal | None:
        """What the node would say of the pod if it were so; None if it would take it."""

    def may_move(self, pod: Pod) -> bool:
        """Whether a pod can be asked to go elsewhere."""

    def move_one_of(self, records: Sequence[PodRecord]) -> Iterable[Step]:
        """The first of these pods that can go elsewhere, after which the pod fits."""


Details = Callable[[Trial], Iterable[str]]
"""The facts behind a refusal, as far as there is more to say."""
Propose = Callable[[Trial], Iterable[Step]]
"""Steps that might lift a refusal; whether they do is found out by taking them in a fork."""


class Proposal(NamedTuple):
    """A way to look for steps."""

    propose: Propose
    tries: bool = False
    """Whether it tries what it proposes; others read what is short, as the node refused it."""


Costs = npt.NDArray[np.float64]
Lack = tuple[Hashable, float]
"""What nodes must have in common to lack alike, and what lifting that costs at the least."""
OfNode = Callable[[Node, int], Lack]


@dataclass(frozen=True, slots=True)
class Lacks:
    """What lifting a filter's refusals costs at the least, by node, and which nodes lack alike."""

    costs: Costs
    likes: Sequence[Hashable] | None = None
    """What each must have in common with others; None if all lack alike."""


Lacking = Callable[[Filter, Pod, Cluster, SlotArray], Lacks]
"""What the refused nodes of these slots lack."""


def lacks_by_node(of_node: OfNode, cluster: Cluster, slots: SlotArray) -> Lacks:
    """What nodes lack, asked one by one."""
    found = [of_node(cluster.node_at(slot), slot) for slot in slots.tolist()]
    costs = np.array([cost for _, cost in found], dtype=np.float64)
    return Lacks(costs, [like for like, _ in found])


@dataclass(frozen=True, slots=True, kw_only=True)
class Explaining:
    """How a plugin's refusals are explained."""

    details: Details | None = None
    proposals: tuple[Proposal, ...] = ()
    least_cost: float | None = None
    """What the cheapest step costs that could lift its refusal; None if there is none."""
    lacking: Lacking | None = None
    """What nodes lack; None if those lack alike that it refuses for the same reasons."""

    def lacks(self, one: Filter, pod: Pod, cluster: Cluster, slots: SlotArray) -> Lacks:
        """What refused nodes lack."""
        if self.lacking is not None:
            return self.lacking(one, pod, cluster, slots)
        cost = HOPELESS if self.least_cost is None else self.least_cost
        return lacks_by_node(lambda _, slot: (one.refusal(slot).reasons, cost), cluster, slots)


UNEXPLAINED = Explaining()
