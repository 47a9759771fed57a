"""InterPodAffinity: pods that must, or would rather, be near others or away from them."""

from __future__ import annotations

from bayplan.fit.plugins.domains import topology_keys
from bayplan.fit.plugins.inter_pod_affinity.capacity import CAPACITY
from bayplan.fit.plugins.inter_pod_affinity.explanation import EXPLAINING
from bayplan.fit.plugins.inter_pod_affinity.filter import HINTS, NAME, compile_filter
from bayplan.fit.plugins.inter_pod_affinity.score import compile_score
from bayplan.fit.plugins.plugin import FILTERING, SCORING, Cause, Plugin

PLUGIN = Plugin(
    name=NAME,
    points=(*FILTERING, *SCORING),
    node_fields=("metadata.labels",),
    cause=Cause.AFFINITY,
    filters=(compile_filter,),
    score=compile_score,
    weight=2,
    hints=HINTS,
    capacity=CAPACITY,
    explaining=EXPLAINING,
    node_labels=topology_keys,
)
