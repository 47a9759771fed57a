"""What all filters have in common."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from bayplan.fit.needs.pods import PodClaim, VolumeNeeds
from bayplan.fit.refusal import Refusal
from bayplan.fit.shapes.shape import Shape
from bayplan.fit.shapes.terms import SpreadConstraint
from bayplan.fit.state.cluster import Cluster
from bayplan.fit.state.columns import BoolArray, Rows
from bayplan.fit.state.nodesets import NodeSet
from bayplan.kube.pods import Pod


class Reads(Enum):
    """What an answer about one node rests on, and so when it must be asked again."""

    NODE = "the node object and its CSINode"
    USAGE = "also what is on the node"
    CLUSTER = "also what is on other nodes"


@dataclass(frozen=True, slots=True, eq=False)
class Question:
    """May these pods go somewhere: a shape, what it needs of storage, and the node it insists
    on.
    """

    cluster: Cluster
    shape: Shape
    needs: VolumeNeeds
    node_name: str = ""
    default_spread: tuple[SpreadConstraint, ...] = ()
    """The constraints that a pod without its own gets from its service or controller."""


@dataclass(frozen=True, slots=True, eq=False)
class Arrival:
    """A pod as plugins see it before any node is looked at."""

    pod: Pod
    shape: Shape
    claims: Sequence[PodClaim]


class Filter(Protocol):
    """A predicate, compiled for one question."""

    @property
    def name(self) -> str:
        """The plugin's name."""

    @property
    def reads(self) -> Reads:
        """When it must be asked again."""

    def passes(self, rows: Rows) -> BoolArray:
        """Which of these slots' nodes may take the pod."""

    def refusal(self, slot: int) -> Refusal:
        """Why a node that does not pass does not."""


class NodeSetFilter:
    """A predicate on the node object alone, with one lasting reason."""

    reads = Reads.NODE

    def __init__(self, name: str, nodes: NodeSet, reason: str) -> None:
        self.name = name
        self._nodes = nodes
        self._refusal = Refusal.unresolvable(name, reason)

    def passes(self, rows: Rows) -> BoolArray:
        """Which of these slots' nodes are in the set."""
        return self._nodes.mask()[rows]

    def refusal(self, slot: int) -> Refusal:  # noqa: ARG002 - the same for every node
        """Why the others are not."""
        return self._refusal
