"""NodeResourcesFit: what a pod requests must be free, and the node must take one more pod."""

from __future__ import annotations

from collections import Counter

import numpy as np

from bayplan.fit.decision import UNRESOLVABLE, UNSCHEDULABLE, Refusal
from bayplan.fit.plugins.base import AmountFilter, EvaluationRequest, Filter
from bayplan.fit.plugins.hints import ClusterEvent, Hints, UnschedulablePod, counted_node
from bayplan.fit.plugins.node_resources_fit.arguments import ResourceFitSettings
from bayplan.fit.profile import PluginSet
from bayplan.fit.signatures.signature import PodSignature
from bayplan.fit.state.columns import BoolArray, FloatArray, IntArray, Rows, SlotArray, pick
from bayplan.fit.state.pods import PodRecord
from bayplan.fit.state.resources import allocatable
from bayplan.kube.nodes import Node
from bayplan.kube.pods import Pod
from bayplan.kube.resources import CPU, EPHEMERAL_STORAGE, MEMORY, PODS, is_extended

NAME = "NodeResourcesFit"
TOO_MANY_PODS = "Too many pods"
FIRST = (CPU, MEMORY, EPHEMERAL_STORAGE)


class NodeResourcesFit(AmountFilter):
    """Requests against what is free."""

    name = NAME

    def __init__(self, request: EvaluationRequest) -> None:
        self._resources = request.cluster.resources
        self._requests = filtered_requests(request.signature, request.plugins)
        self.need = self._resources.need(self._requests)
        """The least that must be free, by column."""
        self._from_devices = [
            self._resources.columns[n] for n in request.requirements.devices.extended
        ]
        """Columns of what nodes that have none of it may give as a device."""

    def passes(self, rows: Rows) -> BoolArray:
        """Return the nodes with enough of everything."""
        free = pick(self._resources.free, rows)
        width = len(self.need)
        if free.shape[1] != width:  # another request has added a column since
            free = free[:, :width]
        enough = free >= self.need
        if self._from_devices:
            self._spare(enough, pick(self._resources.allocatable, rows))
        passes: BoolArray = np.logical_and.reduce(enough, axis=1)
        return passes

    def _spare(self, enough: BoolArray, allocatable: IntArray) -> None:
        """Pass resources that a node has none of and devices may provide."""
        for column in self._from_devices:
            enough[:, column] |= allocatable[:, column] == 0

    def refusal(self, slot: int) -> Refusal:
        """Return everything that is short; unresolvable if the node is too small even when
        empty.
        """
        return self.refusal_given(self._resources.free[slot], slot)

    def refusals(self, slots: SlotArray) -> list[Refusal]:
        """Return the refusals of many nodes, computed once for nodes that lack the same."""
        _, first, kinds = np.unique(
            self._refusal_rows(slots), axis=0, return_index=True, return_inverse=True
        )
        distinct = [self.refusal(slot) for slot in slots[first].tolist()]
        return [distinct[kind] for kind in kinds.reshape(-1).tolist()]

    def refusal_counts(self, slots: SlotArray) -> Counter[Refusal]:
        """Count nodes by refusal."""
        _, first, counts = np.unique(
            self._refusal_rows(slots), axis=0, return_index=True, return_counts=True
        )
        found: Counter[Refusal] = Counter()
        for slot, count in zip(slots[first].tolist(), counts.tolist(), strict=True):
            found[self.refusal(slot)] += count
        return found

    def _refusal_rows(self, slots: SlotArray) -> BoolArray:
        """Return a row for each node, with all that its refusal rests on."""
        free, has = self._resources.free[slots], self._resources.allocatable[slots]
        columns = [self._resources.columns[name] for name in self._requests]
        short = free[:, columns] < np.array(list(self._requests.values()), dtype=np.int64)
        for number, column in enumerate(columns):
            if column in self._from_devices:
                short[:, number] &= has[:, column] != 0
        found: BoolArray = np.column_stack((free[:, 0] < 1, self.unresolvable(slots), short))
        return found

    def refusal_given(self, free: IntArray, slot: int) -> Refusal:
        """Return the refusal if so much were free on the node."""
        short = self._short_of(free, slot)
        reasons = [TOO_MANY_PODS] if free[0] < 1 else []
        reasons += [f"Insufficient {name}" for name in short]
        too_small = self.unresolvable(np.array([slot]))[0]
        return Refusal(UNRESOLVABLE if too_small else UNSCHEDULABLE, NAME, tuple(reasons))

    def unresolvable(self, slots: SlotArray) -> BoolArray:
        """Return the nodes that are too small even when empty (except for the number of pods)."""
        width = len(self.need)
        has = self._resources.allocatable[slots, :width]
        enough = has >= self.need
        self._spare(enough, has)
        too_small: BoolArray = ~np.logical_and.reduce(enough[:, 1:], axis=1)
        return too_small

    def is_affected_by(self, record: PodRecord) -> bool:  # noqa: ARG002 - for every pod
        """Every pod does: each counts against the limit of pods."""
        return True

    def may_pass_without(self, record: PodRecord, slot: int) -> bool:
        """Whether a pod requests as much as is short, of every resource that is."""
        takes = record.signature.requests
        short = self.shortages(slot)
        return all(takes.get(name, 0) >= wanted - free for name, (wanted, free) in short.items())

    def shortages(self, slot: int) -> dict[str, tuple[int, int]]:
        """What is short on a node: by resource what is wanted and what is free."""
        return self._short_of(self._resources.free[slot], slot)

    def missing_shares(self, slots: SlotArray) -> FloatArray:
        """Return by slot the largest share of a request that is missing there."""
        need = self.need
        lack = np.maximum(need - self._resources.free[slots][:, : len(need)], 0)
        shares: FloatArray = (lack / np.maximum(need, 1)).max(axis=1, initial=0.0)
        return shares

    def _short_of(self, free_there: IntArray, slot: int) -> dict[str, tuple[int, int]]:
        others = sorted(set(self._requests) - set(FIRST))
        found = {}
        for name in (*(n for n in FIRST if n in self._requests), *others):
            wanted = self._requests[name]
            column = self._resources.columns[name]
            free = int(free_there[column])
            spared = column in self._from_devices and not self._resources.allocatable[slot, column]
            if wanted > free and not spared:
                found[name] = (wanted, free)
        return found


def filtered_requests(signature: PodSignature, plugins: PluginSet) -> dict[str, int]:
    """Return a pod's requests without ignored resources."""
    settings = plugins.args_of(ResourceFitSettings)
    if not settings.ignores:
        return signature.requests
    names, groups = settings.ignored_resources, settings.ignored_resource_groups
    return {
        name: amount
        for name, amount in signature.requests.items()
        if not (is_extended(name) and (name in names or name.partition("/")[0] in groups))
    }


def compile_filter(request: EvaluationRequest) -> Filter | None:
    """Compile the filter."""
    return NodeResourcesFit(request)


def _node_may_help(pending: UnschedulablePod, event: ClusterEvent) -> bool:
    """Whether a node that is large enough was added, or has more of what the pod needs."""
    before, after = event.before, event.after
    if not isinstance(after, Node):
        return False
    needs = {PODS: 1, **filtered_requests(pending.signature, pending.plugins)}
    has = {name: allocatable(after.status.allocatable, name) for name in needs}
    if any(has[name] < needs[name] for name in needs):
        return False
    if not isinstance(before, Node):
        return True
    return any(has[name] > allocatable(before.status.allocatable, name) for name in needs)


def _pod_may_help(pending: UnschedulablePod, event: ClusterEvent) -> bool:
    """Whether a pod left a node, or takes less of what the pod needs."""
    place = counted_node(event.before)
    if not place:
        return False
    before, after = event.before, event.after
    if place != counted_node(after) or not isinstance(before, Pod) or not isinstance(after, Pod):
        return True
    took = pending.cluster.signatures.of(before).requests
    takes = pending.cluster.signatures.of(after).requests
    needed = filtered_requests(pending.signature, pending.plugins)
    return any(took.get(name, 0) > takes.get(name, 0) for name in needed)


HINTS: Hints = {Node: _node_may_help, Pod: _pod_may_help}
