"""How many new nodes of a template help how many pods of which groups.

Filters only. Pods are put where they suit each other, or first fit, the largest first. What is
largest is a matter of what runs short, and nobody knows that beforehand: several orders are tried,
and the way counts that helps the most pods with the fewest nodes. None is tried after one that no
other could do better than, or, where many pods wait, not by much.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from bayplan.fit.batches.attempt import Attempt, Prospect, new_names, packed_places
from bayplan.fit.batches.comparing import compares_nodes, told_apart
from bayplan.fit.batches.groups import Group
from bayplan.fit.batches.loads import Loads
from bayplan.fit.batches.packing import Row
from bayplan.fit.batches.template import Template, add_node
from bayplan.fit.snapshot import Snapshot
from bayplan.kube.pods import Pod

Order = tuple[int, ...]
GOOD = 1.02
"""How much more than the least that could be enough is good enough where many pods wait."""


@dataclass(frozen=True, slots=True, eq=False)
class Estimate:
    """What new nodes of a template would do."""

    template: Template
    groups: tuple[Group, ...]
    helped: tuple[int, ...]
    """By group, how many of its pods find a place."""
    nodes: int
    """How many new nodes that takes."""
    _rows: tuple[Row, ...] = ()
    _log: tuple[tuple[str, Pod] | int, ...] = ()
    _unpacked: Mapping[int, list[tuple[str, Pod]]] = field(default_factory=dict)

    @property
    def pods(self) -> int:
        """How many pods find a place."""
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
        """For each new node the pods that it is for."""
        found: list[list[Pod]] = [[] for _ in range(self.nodes)]
        for number, pod in self.placements():
            found[number].append(pod)
        return found


def estimate(
    snapshot: Snapshot, template: Template, groups: Sequence[Group], most: int
) -> Estimate:
    """How many new nodes of a template, and no more than `most`, help which pods; nothing is
    changed.
    """
    prospect = look(snapshot, template, groups, most)
    best = Estimate(template, tuple(groups), (0,) * len(groups), 0)
    for found in _ways(prospect):
        if (found.pods, -found.nodes) > (best.pods, -best.nodes):
            best = found
        if found.pods == prospect.pods and found.nodes <= _enough(prospect, found):
            break
    return best


def _ways(prospect: Prospect) -> Iterator[Estimate]:
    found = orders(prospect)
    yield blended(prospect, found[-1])
    yield from (in_order(prospect, order) for order in found)


def _enough(prospect: Prospect, found: Estimate) -> float:
    """With how many nodes nothing else needs to be tried."""
    least = prospect.loads.least(found.helped)
    return least if prospect.has_few_pods else least * GOOD


def look(snapshot: Snapshot, template: Template, groups: Sequence[Group], most: int) -> Prospect:
    """What is asked, with what the pods take of a new node and what there is to take."""
    asked = tuple(
        replace(group, hinges=True) if told_apart(group, template.daemons, snapshot) else group
        for group in groups
    )
    with snapshot.fork():
        name = next(new_names(snapshot, template))
        add_node(snapshot, template, name)
        loads = Loads(snapshot, name, asked, template.own_labels)
    own = template.own_labels
    comparing = frozenset(n for n, group in enumerate(asked) if compares_nodes(group, own))
    return Prospect(snapshot, template, asked, loads, most, comparing)


def orders(prospect: Prospect) -> list[Order]:
    """Orders worth trying, each once: the largest first by cpu and memory together, by what a
    pod takes most of, by all that it takes, and by how few of them a node has room for. Where
    many pods wait, only the first.
    """
    loads = prospect.loads
    hopeful = [n for n, group in enumerate(prospect.groups) if group.pods and not group.refusal]
    shares = {number: loads.share(number) for number in hopeful}

    def by_cpu_and_memory(number: int) -> tuple[int, int]:
        return -int(shares[number][1:3].sum()), number

    def by_most(number: int) -> tuple[int, int]:
        return -int(shares[number].max()), number

    def by_everything(number: int) -> tuple[int, int]:
        return -int(shares[number].sum()), number

    def by_room(number: int) -> tuple[int, int]:
        return loads.room(number), -int(shares[number].sum())

    keys = (by_cpu_and_memory, by_most, by_everything, by_room)
    found = list(dict.fromkeys(tuple(sorted(hopeful, key=key)) for key in keys))
    return found if prospect.has_few_pods else found[:1]


def in_order(prospect: Prospect, order: Order) -> Estimate:
    """What comes of taking groups in an order."""
    with prospect.snapshot.fork():
        attempt = Attempt(prospect)
        attempt.run(order)
        return _outcome(prospect, attempt)


def blended(prospect: Prospect, order: Order) -> Estimate:
    """What comes of putting groups where they suit each other, as far as they go together."""
    with prospect.snapshot.fork():
        attempt = Attempt(prospect)
        attempt.blend(order)
        return _outcome(prospect, attempt)


def filled(prospect: Prospect, fillings: Iterable[tuple[Sequence[int], int]]) -> Estimate:
    """What comes of filling nodes as told: how many pods of each group go onto each of so many."""
    attempt = Attempt(prospect)
    attempt.take(fillings)
    return _outcome(prospect, attempt)


def shared(prospect: Prospect, order: Order, counts: Sequence[int]) -> tuple[Estimate, list[Group]]:
    """What comes of the first so many pods of each group, with the others filling what these leave
    of their nodes; and who has no place then. Groups that compare nodes fill nothing.
    """
    with prospect.snapshot.fork():
        attempt = Attempt(prospect)
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
        return _outcome(prospect, attempt), [group.of(pods) for group, pods in left]


def _outcome(prospect: Prospect, attempt: Attempt) -> Estimate:
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
