"""Anti-affinity from host to host: who keeps whom off one node."""

from __future__ import annotations

from bayplan.fit.plugins.capacity import AlikePods, Capacity, Exclusion, OneNode
from bayplan.fit.signatures.terms import PlacedTerm


def _apart(pods: AlikePods, on: OneNode) -> list[PlacedTerm]:
    """Anti-affinity terms that ask about one node only."""
    terms = pods.signature.terms.anti_affinity
    return [placed for placed in terms if placed.topology_key in on.labels]


def _may(pods: AlikePods, on: OneNode) -> bool:
    return bool(_apart(pods, on))


def _keeps_off(there: AlikePods, coming: AlikePods, on: OneNode) -> bool:
    known, one, other = on.namespaces, there.signature, coming.signature
    return any(
        placed.term.picks(one.namespace, there.labels, known) for placed in _apart(coming, on)
    ) or any(
        placed.term.concerns(other.namespace, coming.labels, known) for placed in _apart(there, on)
    )


CAPACITY = Capacity(exclusion=Exclusion(may=_may, keeps_off=_keeps_off, of_any=True))
