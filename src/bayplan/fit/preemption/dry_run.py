"""Trying preemption on nodes: all pods of lower priority leave, and as many as can come back.

`victims_on` tries one node: pods are taken away and put back for real, and the filters are asked
each time. This is exact whatever the filters look at, and is used where a victim matters to more
than the resources of its node. Nothing that was counted before is missing afterwards.

`PreemptionTable` tries many nodes at once, where a victim matters only by what it requests. What
would be free without the victims is one sum for all nodes. Where that is enough, victims come back:
the nodes are rows and their victims columns, in the order in which they may. One column after the
other is put back on all nodes together; a row where the pending pod would then lack something
leaves that victim out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np

from bayplan.fit.decision import Refusal
from bayplan.fit.evaluation.ranks import Evaluation
from bayplan.fit.plugins.base import AmountFilter, Filter, ReadScope, amount_filter
from bayplan.fit.preemption.victims import PreemptiblePod, PreemptiblePods, PreemptionCandidate
from bayplan.fit.signatures.signature import PodSignature
from bayplan.fit.state.cluster import ClusterState
from bayplan.fit.state.columns import BoolArray, IntArray, SlotArray
from bayplan.fit.state.pods import PodRecord

# -- one node --------------------------------------------------------------------------------------


Check = Callable[[str], Refusal | None]
"""Why a node does not take the pod as things are; None if it does."""


def victims_on(
    node: str,
    lower: list[PodRecord],
    preemptible: PreemptiblePods,
    check: Check,
    cluster: ClusterState,
) -> PreemptionCandidate | Refusal:
    """Return the victims on a node, or the refusal that preemption does not lift."""
    with _without(lower, cluster):
        refusal = check(node)
        if refusal is not None:
            return refusal
        protected, others = preemptible.by_budget(lower)
        lost = [one for one in protected if not _is_reprieved(one, node, check, cluster)]
        gone = [one for one in others if not _is_reprieved(one, node, check, cluster)]
    return PreemptionCandidate.of(node, lost, gone)


@contextmanager
def _without(lower: list[PodRecord], cluster: ClusterState) -> Iterator[None]:
    """Stop counting pods; at the end all are counted again."""
    try:
        cluster.uncount_all(lower)
        yield
    finally:
        cluster.count_all([one for one in lower if one.slot < 0])


def _is_reprieved(one: PreemptiblePod, node: str, check: Check, cluster: ClusterState) -> bool:
    """Put a pod back, and leave it there if the pending pod still fits."""
    cluster.count_all([one.record])
    if check(node) is None:
        return True
    cluster.uncount_all([one.record])
    return False


# -- many nodes at once ----------------------------------------------------------------------------


VectorOf = Callable[[PodSignature], IntArray]


class NodeVictims(NamedTuple):
    """A node and its pods of lower priority."""

    slot: int
    lower: list[PodRecord]


class PreemptionTable:
    """One pod's filters, tried on many nodes at once."""

    def __init__(self, evaluation: Evaluation, preemptible: PreemptiblePods) -> None:
        self._cluster = evaluation.request.cluster
        self._preemptible = preemptible
        self._filters = [one for one in evaluation.filters if one.is_active]
        self._fit = amount_filter(self._filters)
        self._sensitive = [
            one for one in self._filters if one.reads is not ReadScope.NODE and one is not self._fit
        ]

    def takes(self, lower: Sequence[PodRecord]) -> bool:
        """Whether these pods matter to no filter but by what they request."""
        if self._fit is None or any(record.signature.is_huge for record in lower):
            return False
        return not self._sensitive or not any(
            one.is_affected_by(record) for one in self._sensitive for record in lower
        )

    def outcomes(self, rows: Sequence[NodeVictims]) -> list[PreemptionCandidate | Refusal]:
        """Return the candidate or the refusal of each node."""
        if not rows or self._fit is None:
            return []
        slots = np.array([row.slot for row in rows], dtype=np.intp)
        requests = _Requests(len(self._fit.need))
        taken = requests.in_all([row.lower for row in rows], self._cluster.resources.vector)
        free = self._cluster.resources.free[slots, : len(self._fit.need)] + taken
        outcomes = _refusals(self._filters, self._fit, slots, free)
        fitting = [index for index, outcome in enumerate(outcomes) if outcome is None]
        found = self._found([rows[index] for index in fitting], free[fitting], requests)
        found_on = iter(found)
        return [next(found_on) if one is None else one for one in outcomes]

    def _found(
        self, rows: list[NodeVictims], free: IntArray, requests: _Requests
    ) -> list[PreemptionCandidate]:
        """Return the candidates of nodes that the pod fits once all victims are gone."""
        if not rows or self._fit is None:
            return []
        split = [self._preemptible.by_budget(row.lower) for row in rows]
        places = requests.places([[*protected, *others] for protected, others in split])
        kept = _reprieved(free, self._fit.need, requests.vectors, places).tolist()
        names = self._cluster.slots.names
        return [
            PreemptionCandidate.of(names[row.slot], *_leaving(protected, others, stays))
            for row, (protected, others), stays in zip(rows, split, kept, strict=True)
        ]


class _Requests:
    """What pods request, each signature numbered; number 0 is no pod."""

    def __init__(self, width: int) -> None:
        self._width = width
        self._numbers: dict[PodSignature, int] = {}
        self.vectors: IntArray = np.zeros((1, width), dtype=np.int64)

    def in_all(self, rows: Iterable[list[PodRecord]], vector_of: VectorOf) -> IntArray:
        """Return what the pods of each row request together."""
        numbers = self._numbers
        flat: list[int] = []
        starts: list[int] = []
        for row in rows:
            starts.append(len(flat))
            flat += [numbers.setdefault(one.signature, len(numbers) + 1) for one in row]
        self.vectors = np.zeros((len(numbers) + 1, self._width), dtype=np.int64)
        for signature, number in numbers.items():
            self.vectors[number] = vector_of(signature)[: self._width]
        together: IntArray = np.add.reduceat(self.vectors[flat], starts, axis=0)
        return together

    def places(self, rows: Sequence[list[PreemptiblePod]]) -> IntArray:
        """Return the number of the signature at each place of each row."""
        numbers = self._numbers
        places = np.zeros((len(rows), max(map(len, rows))), dtype=np.int64)
        for place, row in zip(places, rows, strict=True):
            place[: len(row)] = [numbers[one.record.signature] for one in row]
        return places


def _refusals(
    filters: Sequence[Filter], fit: AmountFilter, slots: SlotArray, free: IntArray
) -> list[PreemptionCandidate | Refusal | None]:
    """Return the first refusal once all victims are gone; None where there is none."""
    short = free < fit.need
    enough: BoolArray = ~np.logical_or.reduce(short, axis=1)
    masks = [enough if one is fit else one.passes(slots) for one in filters]
    known: dict[bytes, Refusal] = {}
    refusals: list[PreemptionCandidate | Refusal | None] = [None] * len(slots)
    for index in np.flatnonzero(~np.logical_and.reduce(masks)).tolist():
        refuser = next(one for one, mask in zip(filters, masks, strict=True) if not mask[index])
        if refuser is not fit:
            refusals[index] = refuser.refusal(int(slots[index]))
            continue
        shortage = short[index].tobytes()
        if shortage not in known:
            known[shortage] = fit.refusal_given(free[index], int(slots[index]))
        refusals[index] = known[shortage]
    return refusals


def _reprieved(free: IntArray, need: IntArray, vectors: IntArray, places: IntArray) -> BoolArray:
    """Return which victims can come back, by row and place."""
    kept = np.zeros(places.shape, dtype=np.bool_)
    for place in range(places.shape[1]):
        left = free - vectors[places[:, place]]
        stays: BoolArray = np.logical_and.reduce(left >= need, axis=1)
        kept[:, place] = stays
        free = np.where(stays[:, None], left, free)
    return kept


def _leaving(
    protected: list[PreemptiblePod], others: list[PreemptiblePod], stays: list[bool]
) -> tuple[list[PreemptiblePod], list[PreemptiblePod]]:
    """Return, of both lists, the pods that do not stay."""
    after = stays[len(protected) :]
    lost = [one for one, stay in zip(protected, stays, strict=False) if not stay]
    return lost, [one for one, stay in zip(others, after, strict=False) if not stay]
