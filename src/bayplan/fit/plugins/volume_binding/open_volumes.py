"""Claims that open volumes could serve: which of them get one, on every node at once.

Claims of one class look among the same volumes, the smallest claim first, and nodes that reach the
same sites serve them alike. When a volume is taken, only nodes that reach its site are looked at
again.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from bayplan.fit.plugins.base import Question
from bayplan.fit.state.cluster import Cluster
from bayplan.fit.state.columns import BoolArray, NodeSet
from bayplan.fit.volumes.binding import FirstConsumerClaim, Provisioning, has_capacity
from bayplan.fit.volumes.sites import Site, WantedVolume, smallest_volume
from bayplan.kube.nodes import Node


class ServedClaims:
    """The claims of one class, each with a volume or with room to make one."""

    def __init__(self, class_name: str, claims: list[FirstConsumerClaim], cluster: Cluster) -> None:
        self._wanted = [claim.search[1] for claim in claims if claim.search]
        self._to_make = [makeable(claim.provisioning, cluster) for claim in claims]
        self._class_name = class_name
        self._cluster = cluster
        self._reachable = cluster.reachable(class_name)
        self._start_again()

    def mask(self) -> BoolArray:
        """The slots whose nodes serve every claim."""
        self._reachable = self._cluster.reachable(self._class_name)
        codes = self._reachable.codes()
        self._refresh()
        mask: BoolArray = np.ones(len(codes), dtype=np.bool_)
        for index, makeable_on in enumerate(self._to_make):
            mask &= self._served[codes, index] | makeable_on.mask()
        return mask

    def _start_again(self) -> None:
        self._served: BoolArray = np.zeros((0, len(self._wanted)), dtype=np.bool_)
        self._standing = self._reachable.standing
        self._cursor = self._reachable.volumes.changes.end

    def _refresh(self) -> None:
        changes = self._reachable.volumes.changes
        changed = changes.after(self._cursor)
        if changed is None or self._standing is not self._reachable.standing:
            self._start_again()
            changed = []
        known = len(self._served)
        missing = len(self._reachable.sites) - known
        if missing:
            more = np.zeros((missing, len(self._wanted)), dtype=np.bool_)
            self._served = np.concatenate([self._served, more])
        stale = {code for site in changed for code in self._reachable.with_site(site)}
        for code in (*stale, *range(known, len(self._served))):
            self._served[code] = served(self._wanted, self._reachable.sites[code])
        self._cursor = changes.end


def served(wanted: Iterable[WantedVolume], sites: tuple[Site, ...]) -> list[bool]:
    """Which claims get a volume where these sites can be reached; the first takes first."""
    taken: set[str] = set()
    answers = []
    for one in wanted:
        pv = smallest_volume(sites, one, taken)
        answers.append(pv is not None)
        if pv is not None:
            taken.add(pv.name)
    return answers


def makeable(provisioning: Provisioning, cluster: Cluster) -> NodeSet:
    """The nodes for which a volume could be made."""
    capacity = provisioning.capacity

    def can_make(node: Node) -> bool:
        return provisioning.allowed_on(node) and (
            capacity is None or has_capacity(capacity, node, cluster.storage)
        )

    return cluster.node_sets.where(("makeable", provisioning), can_make)


def served_claims(question: Question) -> list[ServedClaims]:
    """The claims of a pod that open volumes could serve, by class."""
    by_class: dict[str, list[FirstConsumerClaim]] = {}
    for claim in question.requirements.first_consumer:
        if claim.chooses and claim.search:
            by_class.setdefault(claim.search[0], []).append(claim)
    return [ServedClaims(name, claims, question.cluster) for name, claims in by_class.items()]
