"""Which pods keep each other off a node: host ports, disks, and anti-affinity from host to host.

All of these ask only who else is on the same node, so that for two groups there is one answer. A
group that excludes itself has at most one pod on a node.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from bayplan.fit.batches.groups import Group
from bayplan.fit.signatures.signature import HostPort
from bayplan.fit.signatures.terms import Namespaces, PlacedTerm
from bayplan.fit.state.node_usage import ANY_ADDRESS, Disk


class Exclusions:
    """Who keeps whom off a node, by the number of the group."""

    def __init__(
        self, groups: Sequence[Group], labels: frozenset[str], namespaces: Namespaces
    ) -> None:
        self._groups = groups
        self._labels = labels
        self._namespaces = namespaces
        self._excluding = [number for number, one in enumerate(groups) if self._may_exclude(one)]

    def by(self, number: int) -> frozenset[int]:
        """The groups that a pod of this group keeps off its node."""
        is_apart = bool(self._apart(self._groups[number]))
        others = range(len(self._groups)) if is_apart else self._excluding
        return frozenset(other for other in others if self._keeps_off(number, other))

    def _may_exclude(self, group: Group) -> bool:
        disks = group.needs.disks if group.needs else ()
        return bool(group.signature.ports or disks or self._apart(group))

    def _apart(self, group: Group) -> list[PlacedTerm]:
        """A group's anti-affinity terms that ask about one node only."""
        terms = group.signature.terms.anti_affinity
        return [placed for placed in terms if placed.topology_key in self._labels]

    def _keeps_off(self, there: int, coming: int) -> bool:
        one, other = self._groups[there], self._groups[coming]
        return (
            ports_collide(one.signature.ports, other.signature.ports)
            or disks_collide(_disks(one), _disks(other))
            or self._want_apart(one, other)
        )

    def _want_apart(self, there: Group, coming: Group) -> bool:
        known, one, other = self._namespaces, there.signature, coming.signature
        return any(
            placed.term.picks(one.namespace, there.labels, known) for placed in self._apart(coming)
        ) or any(
            placed.term.concerns(other.namespace, coming.labels, known)
            for placed in self._apart(there)
        )


def excludes_itself(group: Group) -> bool:
    """Whether two pods of a group cannot be on one node, for their ports or disks."""
    disks = _disks(group)
    return bool(group.signature.ports) or disks_collide(disks, disks)


def ports_collide(some: Iterable[HostPort], others: Sequence[HostPort]) -> bool:
    """Whether two pods want the same port of one host."""
    return any(
        (one.protocol, one.port) == (other.protocol, other.port)
        and (ANY_ADDRESS in (one.ip, other.ip) or one.ip == other.ip)
        for one in some
        for other in others
    )


def disks_collide(some: Iterable[Disk], others: Sequence[Disk]) -> bool:
    """Whether two pods name a disk that they cannot both have mounted."""
    return any(
        one.name == other.name and not (one.read_only and other.read_only)
        for one in some
        for other in others
    )


def _disks(group: Group) -> tuple[Disk, ...]:
    return group.needs.disks if group.needs else ()
