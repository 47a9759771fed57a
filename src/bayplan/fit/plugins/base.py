"""Base classes of filters and scores, and the request that they are compiled for.

A filter is a predicate on nodes. A local score is final for each node by itself; a relative one
compares the nodes that are feasible, so its answer for one node can change when another node
becomes feasible or full.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import ClassVar

import numpy as np

from bayplan.fit.decision import UNRESOLVABLE, Refusal
from bayplan.fit.profile import DEFAULT_PLUGINS, PluginSet
from bayplan.fit.requirements.default_spread import NO_DEFAULTS, DefaultSpread
from bayplan.fit.requirements.devices import NO_DEVICES, DeviceRequirements
from bayplan.fit.requirements.pods import PodClaim, PodRequirements
from bayplan.fit.signatures.signature import PodSignature
from bayplan.fit.state.cluster import ClusterState
from bayplan.fit.state.columns import BoolArray, IntArray, NodeSet, NodeTally, Rows, SlotArray
from bayplan.fit.state.pods import PodRecord
from bayplan.kube.pods import Pod


class ReadScope(Enum):
    """What an answer about one node rests on, and so when it must be refreshed."""

    NODE = "the node object and its CSINode"
    USAGE = "also what is on the node"
    CLUSTER = "also what is on other nodes"


@dataclass(frozen=True, slots=True, eq=False)
class EvaluationRequest:
    """What an evaluation is compiled for: a pod signature, storage requirements and required
    node.
    """

    cluster: ClusterState
    signature: PodSignature
    requirements: PodRequirements
    node_name: str = ""
    default_spread: DefaultSpread = NO_DEFAULTS
    """The constraints of a pod without its own, by its service or controller."""
    plugins: PluginSet = DEFAULT_PLUGINS


@dataclass(frozen=True, slots=True, eq=False)
class PreFilterInput:
    """A pod as plugins see it before any node is evaluated (PreFilter)."""

    pod: Pod
    signature: PodSignature
    claims: Sequence[PodClaim]
    plugins: PluginSet = DEFAULT_PLUGINS
    devices: DeviceRequirements = NO_DEVICES


class Filter(ABC):
    """A predicate on nodes, compiled for one request."""

    name: str
    """The name in its refusals: the plugin's, unless nodes are not even evaluated."""
    reads: ReadScope
    """What it reads, and so when it must be run again."""

    @property
    def plugin(self) -> str:
        """The plugin that it belongs to."""
        return self.name

    @property
    def restricts_nodes(self) -> bool:
        """Whether it restricts the nodes that a pod may use at all, such as by labels or taints."""
        return False

    @property
    def is_active(self) -> bool:
        """Whether it can refuse the pod on any node now."""
        return True

    @property
    def applies(self) -> bool:
        """Whether kube-scheduler runs it now; it may be inactive even so."""
        return self.is_active

    @abstractmethod
    def passes(self, rows: Rows) -> BoolArray:
        """Return which of these slots' nodes the pod may go to."""

    @abstractmethod
    def refusal(self, slot: int) -> Refusal:
        """Return the refusal of a node that does not pass."""

    def refusals(self, slots: SlotArray) -> list[Refusal]:
        """Return the refusals of many nodes."""
        return [self.refusal(slot) for slot in slots.tolist()]

    def refusal_counts(self, slots: SlotArray) -> Mapping[Refusal, int]:
        """Count these slots' nodes, none of which passes, by refusal."""
        return Counter(self.refusals(slots))

    def out_of_reach(self, slots: SlotArray) -> BoolArray:
        """Return which of these slots' nodes, none of which passes, the pod may not use at all."""
        return np.array([one.out_of_reach for one in self.refusals(slots)], dtype=np.bool_)

    @abstractmethod
    def unresolvable(self, slots: SlotArray) -> BoolArray:
        """Return which of these slots' nodes, none of which passes, preemption cannot help."""

    @abstractmethod
    def is_affected_by(self, record: PodRecord) -> bool:
        """Whether the answer for a node can change when this pod leaves it."""

    def may_pass_without(self, record: PodRecord, slot: int) -> bool:  # noqa: ARG002 - most need not know
        """Whether a node may pass once this pod has left it."""
        return self.is_affected_by(record)

    def missing_labels(self, slot: int) -> Mapping[str, Sequence[str]]:  # noqa: ARG002 - few want any
        """Return the topology labels that a node lacks, with the domains that would suit, the best
        first.
        """
        return {}

    @property
    def by_amounts(self) -> AmountFilter | None:
        """The filter itself, if it is one on amounts in the resources' columns."""
        return None

    def drivers(self, slots: SlotArray) -> frozenset[str]:  # noqa: ARG002 - most know of none
        """Return the CSI drivers (or in-tree plugins) because of which one of these nodes is
        refused.
        """
        return frozenset()

    def refusing_drivers_at(self, slot: int) -> Sequence[str]:  # noqa: ARG002 - most know of none
        """Return the drivers because of which one node is refused, as in its refusal."""
        return ()


class NodeFilter(Filter):
    """Base of predicates on the node object: pods on the node do not matter."""

    reads = ReadScope.NODE

    def unresolvable(self, slots: SlotArray) -> BoolArray:
        """Return all of them."""
        return np.ones(len(slots), dtype=np.bool_)

    def is_affected_by(self, record: PodRecord) -> bool:  # noqa: ARG002 - for every pod
        """No pod does."""
        return False


class UsageFilter(Filter):
    """Base of predicates on the pods of a node: preemption may help."""

    reads = ReadScope.USAGE

    def unresolvable(self, slots: SlotArray) -> BoolArray:
        """Return none of them."""
        return np.zeros(len(slots), dtype=np.bool_)


class AmountFilter(UsageFilter):
    """A predicate on resource columns: a pod matters to it by its requests only."""

    need: IntArray
    """The least that must be free, by column."""

    @property
    def by_amounts(self) -> AmountFilter | None:
        """This filter."""
        return self

    @abstractmethod
    def shortages(self, slot: int) -> dict[str, tuple[int, int]]:
        """Return what is short on a node: by resource what is requested and what is free."""

    @abstractmethod
    def refusal_given(self, free: IntArray, slot: int) -> Refusal:
        """Return the refusal of a node, if so much were free on it."""


def amount_filter(filters: Iterable[Filter]) -> AmountFilter | None:
    """Return the first filter on amounts, if there is one."""
    return next((one.by_amounts for one in filters if one.by_amounts is not None), None)


class NodeSetFilter(NodeFilter):
    """A predicate on the node object alone, with one reason."""

    def __init__(self, name: str, nodes: NodeSet, reason: str) -> None:
        self.name = name
        self._nodes = nodes
        self._refusal = Refusal(UNRESOLVABLE, name, (reason,), out_of_reach=True)

    @property
    def restricts_nodes(self) -> bool:
        """Always."""
        return True

    def passes(self, rows: Rows) -> BoolArray:
        """Return which of these slots' nodes are in the set."""
        return self._nodes.mask()[rows]

    def refusal(self, slot: int) -> Refusal:  # noqa: ARG002 - the same for every node
        """Return the one reason of all other nodes."""
        return self._refusal

    def refusals(self, slots: SlotArray) -> list[Refusal]:
        """Return the same refusal for all of them."""
        return [self.refusal(-1)] * len(slots)

    def refusal_counts(self, slots: SlotArray) -> Mapping[Refusal, int]:
        """Count one refusal for all of them."""
        return {self.refusal(-1): len(slots)} if len(slots) else {}

    def out_of_reach(self, slots: SlotArray) -> BoolArray:
        """Return all of them."""
        return np.ones(len(slots), dtype=np.bool_)


# -- scores ----------------------------------------------------------------------------------------


MAX_SCORE = 100


class Score(ABC):
    """A score, compiled for one request."""

    name: ClassVar[str]
    weight: int = 1
    """What the plugin set has it weigh."""


class LocalScore(Score):
    """A score of each node by itself."""

    reads: ClassVar[ReadScope]

    @abstractmethod
    def points(self, rows: Rows) -> IntArray:
        """Points from 0 to 100 for these slots' nodes."""


class RelativeScore(Score):
    """A score that compares the feasible nodes with each other."""

    flat_points: ClassVar[int] = 0
    """What it gives all nodes while it is flat."""

    @property
    def is_flat(self) -> bool:
        """Whether it now gives all feasible nodes the same."""
        return False

    @property
    def stays_flat(self) -> bool:
        """Whether it stays flat until nodes, namespaces or the terms of running pods change."""
        return False

    @property
    def is_inactive(self) -> bool:
        """Whether it takes no part in scoring now."""
        return False

    @abstractmethod
    def points(self, feasible: BoolArray) -> IntArray:
        """Return points from 0 to 100 by slot; those of infeasible slots mean nothing."""


def proportional(raw: IntArray, feasible: BoolArray, *, reverse: bool) -> IntArray:
    """Counts scaled to 0 to 100 by the largest of the feasible nodes; reversed, less is better."""
    largest = int(raw[feasible].max(initial=0))
    if largest == 0:
        return np.full_like(raw, MAX_SCORE if reverse else 0)
    points = raw * MAX_SCORE // largest
    return MAX_SCORE - points if reverse else points


class CountedScore(RelativeScore):
    """A relative score that scales a count of node properties."""

    more_is_better: ClassVar[bool]

    def __init__(self, tally: NodeTally) -> None:
        self._tally = tally

    @property
    def is_flat(self) -> bool:
        """Whether no node has any of what is counted."""
        return self._tally.is_zero

    @property
    def stays_flat(self) -> bool:
        """Whether it is flat: only nodes matter."""
        return self.is_flat

    def points(self, feasible: BoolArray) -> IntArray:
        """Counts scaled by the largest of the feasible nodes."""
        return proportional(self._tally.counts(), feasible, reverse=not self.more_is_better)
