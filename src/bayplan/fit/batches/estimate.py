"""Estimates: how many new nodes of a template help how many pods of which groups.

Filters only. Pods are put where they suit each other, or first fit, the largest first. What is
largest is a matter of what runs short, which is not known beforehand: several orders are tried,
and the way counts that helps the most pods with the fewest nodes. None is tried after one that no
other could do better than, or, where many pods wait, not by much.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from bayplan.fit.batches.attempt import EstimateInput, PackingAttempt, new_names, packed_places
from bayplan.fit.batches.groups import PodEquivalenceGroup, compares_nodes, is_divided_by_daemons
from bayplan.fit.batches.loads import Loads
from bayplan.fit.batches.packing import NodeRun
from bayplan.fit.batches.template import NodeTemplate, add_node
from bayplan.fit.snapshot import Snapshot
from bayplan.kube.pods import Pod

Order = tuple[int, ...]
GOOD = 1.02
"""How much more than the lower bound is good enough where there are many pods."""


@dataclass(frozen=True, slots=True, eq=False)
class Estimate:
    """What new nodes of a template would do."""

    template: NodeTemplate
    groups: tuple[PodEquivalenceGroup, ...]
    helped: tuple[int, ...]
    """By group, how many of its pods are placed."""
    nodes: int
    """How many new nodes that takes."""
    _rows: tuple[NodeRun, ...] = ()
    _log: tuple[tuple[str, Pod] | int, ...] = ()
    _unpacked: Mapping[int, list[tuple[str, Pod]]] = field(default_factory=dict)

    @property
    def pods(self) -> int:
        """How many pods are placed."""
        return sum(self.helped)

    def placements(self) -> Iterator[tuple[int, Pod]]:
        """The number of a new node and a pod for it, in the order in which they were found: each
        pod fits its node once all before it are placed, if nodes appear when they are needed.
        """
        numbers: dict[int, int] = {}
        for row, pod in self._places():
            yield numbers.setdefault(row, len(numbers)), pod

    def _places(self) -> Iterator[tuple[int, Pod]]:
        numbers = {row.name: number for number, row in enumerate(self._rows) if row.name}
        packed = {entry for entry in self._log if isinstance(entry, int)} - set(self._unpacked)
        places = packed_places(self._rows, packed)
        for entry in self._log:
            if not isinstance(entry, int):
                yield numbers[entry[0]], entry[1]
            elif entry in self._unpacked:
                yield from ((numbers[name], pod) for name, pod in self._unpacked[entry])
            else:
                yield from zip(places[entry], self.groups[entry].pods, strict=False)

    def by_node(self) -> list[list[Pod]]:
        """Return the pods of each new node."""
        found: list[list[Pod]] = [[] for _ in range(self.nodes)]
        for number, pod in self.placements():
            found[number].append(pod)
        return found


def estimate(
    snapshot: Snapshot, template: NodeTemplate, groups: Sequence[PodEquivalenceGroup], most: int
) -> Estimate:
    """Estimate which pods new nodes of a template help, and how many nodes (at most `most`) that
    takes; nothing is changed.
    """
    prospect = prepare_estimate(snapshot, template, groups, most)
    best = Estimate(template, tuple(groups), (0,) * len(groups), 0)
    for found in _estimates(prospect):
        if (found.pods, -found.nodes) > (best.pods, -best.nodes):
            best = found
        if found.pods == prospect.pods and found.nodes <= _enough(prospect, found):
            break
    return best


def _estimates(prospect: EstimateInput) -> Iterator[Estimate]:
    found = orders(prospect)
    yield estimate_blended(prospect, found[-1])
    yield from (estimate_in_order(prospect, order) for order in found)


def _enough(prospect: EstimateInput, found: Estimate) -> float:
    """Return with how many nodes no other order needs to be tried."""
    least = prospect.loads.least(found.helped)
    return least if prospect.has_few_pods else least * GOOD


def prepare_estimate(
    snapshot: Snapshot, template: NodeTemplate, groups: Sequence[PodEquivalenceGroup], most: int
) -> EstimateInput:
    """Return the input of an estimate, with what pods use of a new node and what it has."""
    asked = tuple(
        replace(group, is_interdependent=True)
        if is_divided_by_daemons(group, template.daemons, snapshot)
        else group
        for group in groups
    )
    with snapshot.fork():
        name = next(new_names(snapshot, template))
        add_node(snapshot, template, name)
        loads = Loads(snapshot, name, asked, template.own_labels)
    own = template.own_labels
    comparing = frozenset(n for n, group in enumerate(asked) if compares_nodes(group, own))
    return EstimateInput(snapshot, template, asked, loads, most, comparing)


def orders(prospect: EstimateInput) -> list[Order]:
    """Orders worth trying, each once: the largest first by cpu and memory together, by what a
    pod takes most of, by all that it takes, and by how few of them fit a node. Where
    many pods wait, only the first.
    """
    loads = prospect.loads
    candidates = [n for n, group in enumerate(prospect.groups) if group.pods and not group.refusal]
    shares = {number: loads.share(number) for number in candidates}

    def by_cpu_and_memory(number: int) -> tuple[int, int]:
        return -int(shares[number][1:3].sum()), number

    def by_most(number: int) -> tuple[int, int]:
        return -int(shares[number].max()), number

    def by_everything(number: int) -> tuple[int, int]:
        return -int(shares[number].sum()), number

    def by_pods_per_node(number: int) -> tuple[int, int]:
        return loads.pods_per_node(number), -int(shares[number].sum())

    keys = (by_cpu_and_memory, by_most, by_everything, by_pods_per_node)
    found = list(dict.fromkeys(tuple(sorted(candidates, key=key)) for key in keys))
    return found if prospect.has_few_pods else found[:1]


def estimate_in_order(prospect: EstimateInput, order: Order) -> Estimate:
    """Estimate with groups in an order."""
    with prospect.snapshot.fork():
        attempt = PackingAttempt(prospect)
        attempt.run(order)
        return _result(prospect, attempt)


def estimate_blended(prospect: EstimateInput, order: Order) -> Estimate:
    """Estimate with groups blended."""
    with prospect.snapshot.fork():
        attempt = PackingAttempt(prospect)
        attempt.blend(order)
        return _result(prospect, attempt)


def estimate_filled(
    prospect: EstimateInput, fillings: Iterable[tuple[Sequence[int], int]]
) -> Estimate:
    """Estimate with given counts: how many pods of each group go onto each of how many nodes."""
    attempt = PackingAttempt(prospect)
    attempt.take(fillings)
    return _result(prospect, attempt)


def estimate_shared(
    prospect: EstimateInput, order: Order, counts: Sequence[int]
) -> tuple[Estimate, list[PodEquivalenceGroup]]:
    """Estimate with the first pods of each group, the others filling what these leave of their
    nodes; and the groups that are left then. Groups that compare nodes fill nothing.
    """
    with prospect.snapshot.fork():
        attempt = PackingAttempt(prospect)
        asked = list(zip(prospect.groups, counts, strict=True))
        attempt.left = [group.pods[:count] for group, count in asked]
        attempt.blend(order)
        attempt.left = [
            [*left, *group.pods[count:]]
            for left, (group, count) in zip(attempt.left, asked, strict=True)
        ]
        if not prospect.comparing:
            attempt.packing.most = attempt.packing.nodes
            attempt.blend(order)
        left = zip(prospect.groups, attempt.left, strict=True)
        return _result(prospect, attempt), [group.of(pods) for group, pods in left]


def _result(prospect: EstimateInput, attempt: PackingAttempt) -> Estimate:
    asked = zip(prospect.groups, attempt.left, strict=True)
    return Estimate(
        template=prospect.template,
        groups=prospect.groups,
        helped=tuple(len(group) - len(left) for group, left in asked),
        nodes=attempt.packing.nodes,
        _rows=tuple(attempt.packing.rows),
        _log=tuple(attempt.log),
        _unpacked=attempt.unpacked,
    )
