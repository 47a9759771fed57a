"""What all filters have in common: what they are asked, and how they answer for all nodes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np

from bayplan.fit.plugin_set import DEFAULT_PLUGINS, PluginSet
from bayplan.fit.refusal import UNRESOLVABLE, Refusal
from bayplan.fit.requirements.default_spread import NO_DEFAULTS, DefaultSpread
from bayplan.fit.requirements.devices import NO_DEVICES, DeviceRequirements
from bayplan.fit.requirements.pods import PodClaim, PodRequirements
from bayplan.fit.signatures.signature import PodSignature
from bayplan.fit.state.cluster import Cluster
from bayplan.fit.state.columns import BoolArray, IntArray, NodeSet, Rows, SlotArray
from bayplan.fit.state.pods import PodRecord
from bayplan.kube.pods import Pod


class Reads(Enum):
    """What an answer about one node rests on, and so when it must be asked again."""

    NODE = "the node object and its CSINode"
    USAGE = "also what is on the node"
    CLUSTER = "also what is on other nodes"


@dataclass(frozen=True, slots=True, eq=False)
class Question:
    """May these pods go somewhere: a signature, what it needs of storage, and the node it insists
    on.
    """

    cluster: Cluster
    signature: PodSignature
    requirements: PodRequirements
    node_name: str = ""
    default_spread: DefaultSpread = NO_DEFAULTS
    """The constraints that a pod without its own gets from its service or controller."""
    plugins: PluginSet = DEFAULT_PLUGINS


@dataclass(frozen=True, slots=True, eq=False)
class Arrival:
    """A pod as plugins see it before any node is looked at."""

    pod: Pod
    signature: PodSignature
    claims: Sequence[PodClaim]
    plugins: PluginSet = DEFAULT_PLUGINS
    devices: DeviceRequirements = NO_DEVICES


class Filter(ABC):
    """A predicate, compiled for one question."""

    name: str
    """What its refusals are told by: the plugin's name, unless nodes are not even asked."""
    reads: Reads
    """When it must be asked again."""

    @property
    def plugin(self) -> str:
        """The plugin that it is a filter of."""
        return self.name

    @property
    def chooses(self) -> bool:
        """Whether pods and nodes choose by it whom they have to do with at all, of some nodes."""
        return False

    @property
    def has_say(self) -> bool:
        """Whether it has anything to say of the pod now, beside that it passes."""
        return True

    @property
    def applies(self) -> bool:
        """Whether kube-scheduler asks it as things are; it may have nothing to say even so."""
        return self.has_say

    @abstractmethod
    def passes(self, rows: Rows) -> BoolArray:
        """Which of these slots' nodes may take the pod."""

    @abstractmethod
    def refusal(self, slot: int) -> Refusal:
        """Why a node that does not pass does not."""

    def refusals(self, slots: SlotArray) -> list[Refusal]:
        """The same of many nodes."""
        return [self.refusal(slot) for slot in slots.tolist()]

    def refusal_counts(self, slots: SlotArray) -> Mapping[Refusal, int]:
        """How many of these slots' nodes, none of which passes, are refused how."""
        return Counter(self.refusals(slots))

    def out_of_reach(self, slots: SlotArray) -> BoolArray:
        """Which of these slots' nodes, none of which passes, the pod has nothing to do with."""
        return np.array([one.out_of_reach for one in self.refusals(slots)], dtype=np.bool_)

    @abstractmethod
    def unresolvable(self, slots: SlotArray) -> BoolArray:
        """Which of these slots' nodes, none of which passes, no pod's leaving would help."""

    @abstractmethod
    def heeds(self, record: PodRecord) -> bool:
        """Whether this pod's leaving its node can change what is said of that node."""

    def may_yield(self, record: PodRecord, slot: int) -> bool:  # noqa: ARG002 - most need not know
        """Whether this pod's leaving a node can make a difference there, and enough of one."""
        return self.heeds(record)

    def missing_labels(self, slot: int) -> Mapping[str, Sequence[str]]:  # noqa: ARG002 - few want any
        """The labels that say in which domain a node stands and that it lacks, with the domains
        that would suit, the best first.
        """
        return {}

    def drivers(self, slots: SlotArray) -> frozenset[str]:  # noqa: ARG002 - most know of none
        """The CSI drivers (or in-tree plugins) over which any of these slots' nodes is refused."""
        return frozenset()

    def drivers_at(self, slot: int) -> Sequence[str]:  # noqa: ARG002 - most know of none
        """Those over which one node is refused, as its refusal has it."""
        return ()


class NodeFilter(Filter):
    """What predicates on the node object have in common: no pod there matters to them."""

    reads = Reads.NODE

    def unresolvable(self, slots: SlotArray) -> BoolArray:
        """All of them."""
        return np.ones(len(slots), dtype=np.bool_)

    def heeds(self, record: PodRecord) -> bool:  # noqa: ARG002 - whoever it is
        """None."""
        return False


class UsageFilter(Filter):
    """What predicates on the pods of a node have in common: one that refuses may yet pass."""

    reads = Reads.USAGE

    def unresolvable(self, slots: SlotArray) -> BoolArray:
        """None of them."""
        return np.zeros(len(slots), dtype=np.bool_)


class AmountFilter(UsageFilter):
    """A predicate on amounts in the resources' columns: a pod matters to it by its requests."""

    need: IntArray
    """The least that must be free, by column."""

    @abstractmethod
    def shortages(self, slot: int) -> dict[str, tuple[int, int]]:
        """What is short on a node: by resource what is wanted and what is free."""

    @abstractmethod
    def refusal_given(self, free: IntArray, slot: int) -> Refusal:
        """Why a node does not pass, if so much were free on it."""


def amount_filter(filters: Iterable[Filter]) -> AmountFilter | None:
    """The first filter on amounts, if there is one."""
    return next((one for one in filters if isinstance(one, AmountFilter)), None)


class NodeSetFilter(NodeFilter):
    """A predicate on the node object alone, with one lasting reason."""

    def __init__(self, name: str, nodes: NodeSet, reason: str) -> None:
        self.name = name
        self._nodes = nodes
        self._refusal = Refusal(UNRESOLVABLE, name, (reason,), out_of_reach=True)

    @property
    def chooses(self) -> bool:
        """It always does."""
        return True

    def passes(self, rows: Rows) -> BoolArray:
        """Which of these slots' nodes are in the set."""
        return self._nodes.mask()[rows]

    def refusal(self, slot: int) -> Refusal:  # noqa: ARG002 - the same for every node
        """Why the others are not."""
        return self._refusal

    def refusals(self, slots: SlotArray) -> list[Refusal]:
        """The same for all of them."""
        return [self.refusal(-1)] * len(slots)

    def refusal_counts(self, slots: SlotArray) -> Mapping[Refusal, int]:
        """One for all of them."""
        return {self.refusal(-1): len(slots)} if len(slots) else {}

    def out_of_reach(self, slots: SlotArray) -> BoolArray:
        """All of them."""
        return np.ones(len(slots), dtype=np.bool_)
