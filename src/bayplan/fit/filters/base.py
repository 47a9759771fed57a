"""What all filters have in common."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

import numpy as np

from bayplan.fit.plugins import DEFAULT_PLUGINS, PluginSet
from bayplan.fit.refusal import Refusal
from bayplan.fit.requirements.default_spread import NO_DEFAULTS, DefaultSpread
from bayplan.fit.requirements.devices import NO_DEVICES, DeviceRequirements
from bayplan.fit.requirements.pods import PodClaim, PodRequirements
from bayplan.fit.signatures.signature import PodSignature
from bayplan.fit.state.cluster import Cluster
from bayplan.fit.state.columns import BoolArray, NodeSet, Rows, SlotArray
from bayplan.fit.state.pods import PodRecord
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
    shape: PodSignature
    needs: PodRequirements
    node_name: str = ""
    default_spread: DefaultSpread = NO_DEFAULTS
    """The constraints that a pod without its own gets from its service or controller."""
    plugins: PluginSet = DEFAULT_PLUGINS


@dataclass(frozen=True, slots=True, eq=False)
class Arrival:
    """A pod as plugins see it before any node is looked at."""

    pod: Pod
    shape: PodSignature
    claims: Sequence[PodClaim]
    plugins: PluginSet = DEFAULT_PLUGINS
    devices: DeviceRequirements = NO_DEVICES


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

    def unresolvable(self, slots: SlotArray) -> BoolArray:
        """Which of these slots' nodes, none of which passes, no pod's leaving would help."""

    def heeds(self, record: PodRecord) -> bool:
        """Whether this pod's leaving its node can change what is said of that node."""


class NodeFilter:
    """What predicates on the node object have in common: no pod there matters to them."""

    reads: Reads = Reads.NODE

    def unresolvable(self, slots: SlotArray) -> BoolArray:
        """All of them."""
        return np.ones(len(slots), dtype=np.bool_)

    def heeds(self, record: PodRecord) -> bool:  # noqa: ARG002 - whoever it is
        """None."""
        return False


class UsageFilter:
    """What predicates on the pods of a node have in common: one that refuses may yet pass."""

    reads = Reads.USAGE

    def unresolvable(self, slots: SlotArray) -> BoolArray:
        """None of them."""
        return np.zeros(len(slots), dtype=np.bool_)


class NodeSetFilter(NodeFilter):
    """A predicate on the node object alone, with one lasting reason."""

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
