"""Trying many nodes at once, where a victim matters only by what it requests.

What would be free without the victims is one sum for all nodes. Where that is enough, victims come
back: the nodes are rows and their victims columns, in the order in which they may. One column after
the other is put back on all nodes together; a row where the waiting pod would then lack something
leaves that victim out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from bayplan.fit.evaluation.ranks import Evaluation
from bayplan.fit.plugins.base import AmountFilter, Filter, Reads, amount_filter
from bayplan.fit.preemption.found import Found
from bayplan.fit.preemption.importance import Standing, Standings
from bayplan.fit.refusal import Refusal
from bayplan.fit.signatures.signature import PodSignature
from bayplan.fit.state.columns import BoolArray, IntArray, SlotArray
from bayplan.fit.state.pods import PodRecord

VectorOf = Callable[[PodSignature], IntArray]


class Row(NamedTuple):
    """A node and its pods of lower priority."""

    slot: int
    lower: list[PodRecord]


class Table:
    """What rows are held against: one pod's filters."""

    def __init__(self, evaluation: Evaluation, standings: Standings) -> None:
        self._cluster = evaluation.question.cluster
        self._standings = standings
        self._filters = [one for one in evaluation.filters if one.has_say]
        self._fit = amount_filter(self._filters)
        self._heeding = [
            one for one in self._filters if one.reads is not Reads.NODE and one is not self._fit
        ]

    def takes(self, lower: Sequence[PodRecord]) -> bool:
        """Whether these pods matter to no filter but by what they request."""
        if self._fit is None or any(record.signature.is_huge for record in lower):
            return False
        return not self._heeding or not any(
            one.heeds(record) for one in self._heeding for record in lower
        )

    def outcomes(self, rows: Sequence[Row]) -> list[Found | Refusal]:
        """What is found on each node."""
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

    def _found(self, rows: list[Row], free: IntArray, requests: _Requests) -> list[Found]:
        """Who has to go, on nodes that take the pod once all are gone."""
        if not rows or self._fit is None:
            return []
        split = [self._standings.by_budget(row.lower) for row in rows]
        places = requests.places([[*protected, *others] for protected, others in split])
        kept = _reprieved(free, self._fit.need, requests.vectors, places).tolist()
        names = self._cluster.slots.names
        return [
            Found.of(names[row.slot], *_leaving(protected, others, stays))
            for row, (protected, others), stays in zip(rows, split, kept, strict=True)
        ]


class _Requests:
    """What pods take, each signature numbered; number 0 is nobody."""

    def __init__(self, width: int) -> None:
        self._width = width
        self._numbers: dict[PodSignature, int] = {}
        self.vectors: IntArray = np.zeros((1, width), dtype=np.int64)

    def in_all(self, rows: Iterable[list[PodRecord]], vector_of: VectorOf) -> IntArray:
        """What the pods of each row take together."""
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

    def places(self, rows: Sequence[list[Standing]]) -> IntArray:
        """Which signature stands at which place of which row."""
        numbers = self._numbers
        places = np.zeros((len(rows), max(map(len, rows))), dtype=np.int64)
        for place, row in zip(places, rows, strict=True):
            place[: len(row)] = [numbers[one.record.signature] for one in row]
        return places


def _refusals(
    filters: Sequence[Filter], fit: AmountFilter, slots: SlotArray, free: IntArray
) -> list[Found | Refusal | None]:
    """Who refuses first once all victims are gone; None where nobody does."""
    short = free < fit.need
    enough: BoolArray = ~np.logical_or.reduce(short, axis=1)
    masks = [enough if one is fit else one.passes(slots) for one in filters]
    known: dict[bytes, Refusal] = {}
    refusals: list[Found | Refusal | None] = [None] * len(slots)
    for index in np.flatnonzero(~np.logical_and.reduce(masks)).tolist():
        refuser = next(one for one, mask in zip(filters, masks, strict=True) if not mask[index])
        if refuser is not fit:
            refusals[index] = refuser.refusal(int(slots[index]))
            continue
        lacking = short[index].tobytes()
        if lacking not in known:
            known[lacking] = fit.refusal_given(free[index], int(slots[index]))
        refusals[index] = known[lacking]
    return refusals


def _reprieved(free: IntArray, need: IntArray, vectors: IntArray, places: IntArray) -> BoolArray:
    """Who can come back, by row and place."""
    kept = np.zeros(places.shape, dtype=np.bool_)
    for place in range(places.shape[1]):
        left = free - vectors[places[:, place]]
        stays: BoolArray = np.logical_and.reduce(left >= need, axis=1)
        kept[:, place] = stays
        free = np.where(stays[:, None], left, free)
    return kept


def _leaving(
    protected: list[Standing], others: list[Standing], stays: list[bool]
) -> tuple[list[Standing], list[Standing]]:
    """Of both, those that do not stay."""
    after = stays[len(protected) :]
    lost = [one for one, stay in zip(protected, stays, strict=False) if not stay]
    return lost, [one for one, stay in zip(others, after, strict=False) if not stay]
