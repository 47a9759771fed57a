"""InterPodAffinity: pods that must, or would rather, be near others or away from them."""

from __future__ import annotations

from bayplan.fit.plugins.capacity import Capacity, EquivalenceClass, Exclusion, HostTopology
from bayplan.fit.plugins.explanation import topology_keys
from bayplan.fit.plugins.inter_pod_affinity.explanation import EXPLAINER
from bayplan.fit.plugins.inter_pod_affinity.filter import HINTS, NAME, compile_filter
from bayplan.fit.plugins.inter_pod_affinity.score import ARGUMENTS, compile_score
from bayplan.fit.plugins.plugin import FILTERING, SCORING, Cause, SchedulerPlugin
from bayplan.fit.signatures.terms import PlacedTerm


def _apart(pods: EquivalenceClass, on: HostTopology) -> list[PlacedTerm]:
    """Return the anti-affinity terms over hosts."""
    terms = pods.signature.terms.anti_affinity
    return [placed for placed in terms if placed.topology_key in on.labels]


def _may_exclude(pods: EquivalenceClass, on: HostTopology) -> bool:
    return bool(_apart(pods, on))


def _excludes(there: EquivalenceClass, coming: EquivalenceClass, on: HostTopology) -> bool:
    known, one, other = on.namespaces, there.signature, coming.signature
    return any(
        placed.term.picks(one.namespace, there.labels, known) for placed in _apart(coming, on)
    ) or any(
        placed.term.concerns(other.namespace, coming.labels, known) for placed in _apart(there, on)
    )


CAPACITY = Capacity(
    exclusion=Exclusion(may_exclude=_may_exclude, excludes=_excludes, excludes_any=True)
)


PLUGIN = SchedulerPlugin(
    name=NAME,
    points=(*FILTERING, *SCORING),
    node_fields=("metadata.labels",),
    cause=Cause.AFFINITY,
    filters=(compile_filter,),
    score=compile_score,
    weight=2,
    hints=HINTS,
    capacity=CAPACITY,
    arguments=ARGUMENTS,
    explainer=EXPLAINER,
    node_labels=topology_keys,
)
