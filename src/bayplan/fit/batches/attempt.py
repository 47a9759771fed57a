"""One attempt to pack groups onto new nodes of a template, in a given order or blended.

Each pod goes to the first of the new nodes that takes it; where none does, a node is added, if that
one does. Groups for which only one node's capacity matters are packed without placing a single pod,
or blended (see `packing`). Those that compare nodes
(spreading, affinity, shared claims) are placed one by one: all that was only counted before is
really put into the snapshot, so that answers about them rest on what is there. Those without a
place are tried again at the end, if others have come that they might have waited for.

New nodes of one template are in the same domain of every topology but that of their own names. So
a rule about zones holds for all of them or for none, and one about hosts is about one node.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count, groupby
from operator import itemgetter

import numpy as np

from bayplan.fit.batches.fill import passing, place_all_on, place_on
from bayplan.fit.batches.groups import PodEquivalenceGroup, depends_on
from bayplan.fit.batches.loads import Loads
from bayplan.fit.batches.packing import Blend, NodeRun, Packing, blend_onto
from bayplan.fit.batches.template import NodeTemplate, add_node
from bayplan.fit.evaluation.ranks import Evaluation
from bayplan.fit.snapshot import Snapshot
from bayplan.fit.state.columns import SlotArray
from bayplan.kube.pods import Pod

FEW_PODS = 200
"""So many can be placed one by one at little cost."""


@dataclass(frozen=True, slots=True, eq=False)
class EstimateInput:
    """The input of an estimate: groups, and new nodes of a template."""

    snapshot: Snapshot
    template: NodeTemplate
    groups: tuple[PodEquivalenceGroup, ...]
    loads: Loads
    most: int
    """How many new nodes there may be."""

    comparing: frozenset[int]
    """The groups that compare nodes."""

    @property
    def pods(self) -> int:
        """The number of pods."""
        return sum(map(len, self.groups))

    @property
    def has_few_pods(self) -> bool:
        """Whether there are so few pods that every attempt costs little."""
        return self.pods <= FEW_PODS


class PackingAttempt:
    """Groups on new nodes; the caller undoes what it does to the snapshot."""

    def __init__(self, prospect: EstimateInput) -> None:
        self._snapshot = prospect.snapshot
        self._template = prospect.template
        self._groups = prospect.groups
        self._loads = loads = prospect.loads
        self._comparing = prospect.comparing
        self._names = new_names(prospect.snapshot, prospect.template)
        self._slots: SlotArray = np.zeros(0, dtype=np.intp)
        self._has_placed = False
        self.packing = Packing(loads.fresh, loads.volumes, prospect.most)
        self.log: list[tuple[str, Pod] | int] = []
        """What was done, in order: a pod placed on a node, or a whole group packed."""
        self.packed: set[int] = set()
        """The groups whose pods are only counted."""
        self.unpacked: dict[int, list[tuple[str, Pod]]] = {}
        """The pods of groups that were packed, and then placed after all."""
        self.left: list[Sequence[Pod]] = [group.pods for group in self._groups]
        """By group, the pods that have no place."""

    def run(self, order: Sequence[int]) -> None:
        """Place all groups, in this order."""
        for compares, numbers in groupby(order, self._comparing.__contains__):
            if compares:
                self._materialise()
                self._place_all(numbers)
            else:
                self._pack(numbers)
        self._place_pending(order)

    def blend(self, order: Sequence[int]) -> None:
        """Place all groups: those that do not compare nodes blended, and then the others, in this
        order.
        """
        self._blend([number for number in order if number not in self._comparing])
        comparing = [number for number in order if number in self._comparing]
        if comparing:
            self._materialise()
            self._place_all(comparing)
            self._place_pending(order)

    def take(self, fillings: Iterable[tuple[Sequence[int], int]]) -> None:
        """Put pods onto new nodes by counts: how many of each group onto each of how many nodes."""
        for counts, nodes in fillings:
            chosen = [number for number, pods in enumerate(counts) if pods]
            filling = [(self._loads[number], counts[number]) for number in chosen]
            self.packing.take_all(self.packing.add(nodes), filling)
            for number in chosen:
                self._note(number)
                self.left[number] = self.left[number][counts[number] * nodes :]

    # -- without placing -----------------------------------------------------------------------

    def _pack(self, numbers: Iterable[int]) -> None:
        for number in self._fitting(numbers):
            self._note(number)
            placed = self.packing.pack(self._loads[number], len(self.left[number]))
            self.left[number] = self.left[number][placed:]

    def _blend(self, order: Sequence[int]) -> None:
        """Blend groups; those that matter by more than their size come first, in this order."""
        awkward = self._loads.awkward
        self._pack(number for number in order if number in awkward)
        plain = [number for number in self._fitting(order) if number not in awkward]
        counts = [len(self.left[number]) for number in plain]
        blend = Blend([self._loads[number] for number in plain], counts, self._loads.fresh)
        blend_onto(self.packing, blend)
        for number, before, left in zip(plain, counts, blend.left.tolist(), strict=True):
            self._note(number)
            self.left[number] = self.left[number][before - left :]

    def _note(self, number: int) -> None:
        """Record that pods of a group are counted, in order of the first."""
        if number not in self.packed:
            self.packed.add(number)
            self.log.append(number)

    def _fitting(self, numbers: Iterable[int]) -> list[int]:
        """Return the groups of which a pod fits an empty node."""
        if not self._has_placed:
            return [number for number in numbers if number in self._loads.fitting]
        snapshot = self._snapshot
        with snapshot.fork():
            name = next(self._names)
            add_node(snapshot, self._template, name)
            return [n for n in numbers if snapshot.refusal(self._groups[n].pods[0], name) is None]

    # -- one by one ----------------------------------------------------------------------------

    def _place_all(self, numbers: Iterable[int]) -> None:
        for number in numbers:
            self._place_each(number)

    def _place_each(self, number: int) -> None:
        """Place the pods of a group one by one; equal ones are not tried once one has failed."""
        left: list[Pod] = []
        is_interdependent = self._groups[number].is_interdependent
        pending = iter(self.left[number])
        for pod in pending:
            if not self._place(number, pod):
                left.append(pod)
                if not is_interdependent:
                    break
        self.left[number] = [*left, *pending]

    def _place(self, number: int, pod: Pod) -> bool:
        evaluation = self._snapshot.evaluation(pod)
        if not isinstance(evaluation, Evaluation):
            return False
        row = self._first_passing(evaluation)
        if row is None:
            row = self._on_new_node(pod)
        if row is None:
            return False
        self._assume(number, pod, row)
        return True

    def _first_passing(self, evaluation: Evaluation) -> int | None:
        """Return the row of the first node that a pod fits."""
        rows = self.packing.rows
        if not rows:
            return None
        if len(self._slots) != len(rows):
            by_name = self._snapshot.cluster.slots.by_name
            self._slots = np.array([by_name[row.name] for row in rows], dtype=np.intp)
        passes = passing(evaluation, self._slots)
        found = int(passes.argmax())
        return found if passes[found] else None

    def _on_new_node(self, pod: Pod) -> int | None:
        """Return the row of a new node, if there may be one and the pod fits it."""
        if self.packing.nodes >= self.packing.most:
            return None
        name = next(self._names)
        self._snapshot.begin()
        add_node(self._snapshot, self._template, name)
        if self._snapshot.refusal(pod, name) is not None:
            self._snapshot.revert()
            return None
        self._snapshot.commit()
        return self.packing.add(1, name)

    def _assume(self, number: int, pod: Pod, row: int) -> None:
        name = self.packing.rows[row].name
        place_on(self._snapshot, pod, name)
        self._has_placed = True
        self.packing.take(row, self._loads[number], 1)
        self.log.append((name, pod))

    # -- those that wait for others ------------------------------------------------------------

    def _place_pending(self, order: Sequence[int]) -> None:
        """Try pods again that could not be placed and depend on pods placed since."""
        others = [n for n in order if len(self.left[n]) < len(self._groups[n])]
        pending = [n for n in order if self.left[n] and self._looks_at(n, others)]
        if not pending:
            return
        self._materialise()
        before = -1
        while before != (before := sum(len(self.left[n]) for n in pending)):
            self._place_all(pending)

    def _looks_at(self, number: int, others: Iterable[int]) -> bool:
        """Whether where a group can go depends on where some other one is."""
        signature = self._groups[number].signature
        if not (signature.terms.affinity or signature.hard_spread):
            return False
        return any(
            depends_on(self._groups[number], self._groups[other], self._snapshot)
            for other in others
            if other != number
        )

    def _materialise(self) -> None:
        """Put the nodes that were only counted into the snapshot, with the pods on them."""
        self.packing.unroll()
        for row in self.packing.rows:
            if not row.name:
                row.name = next(self._names)
                add_node(self._snapshot, self._template, row.name)
        for number, places in packed_places(self.packing.rows, self.packed).items():
            names = [self.packing.rows[at].name for at in places]
            self.unpacked[number] = list(zip(names, self._groups[number].pods, strict=False))
            for name, placed in groupby(self.unpacked[number], itemgetter(0)):
                pods = [pod for _, pod in placed]
                place_all_on(self._snapshot, self._groups[number], pods, name)
        self._has_placed |= bool(self.packed)
        self.packed.clear()


def packed_places(rows: Sequence[NodeRun], packed: Collection[int]) -> dict[int, list[int]]:
    """Return the numbers of the nodes of pods that are only counted, by group."""
    places: dict[int, list[int]] = {number: [] for number in packed}
    first = 0
    for row in rows:
        nodes = range(first, first + row.count)
        first += row.count
        for number in row.pods.keys() & packed:
            places[number].extend(node for node in nodes for _ in range(row.pods[number]))
    return places


def new_names(snapshot: Snapshot, template: NodeTemplate) -> Iterator[str]:
    """Yield node names that are unused in the snapshot."""
    cluster = snapshot.cluster
    taken: list[Container[str]] = [
        cluster.slots.by_name,
        cluster.pods.by_node,
        cluster.csinodes,
        *(cluster.topology(label).values for label in template.own_labels),
    ]
    called = template.group or template.node.name
    for number in count(1):
        name = f"template-node-for-{called}-{number}"
        if not any(name in names for names in taken):
            yield name
