"""PodTopologySpread: pods are spread over domains, as they must or should be."""

from __future__ import annotations

from bayplan.fit.plugins.domains import topology_keys
from bayplan.fit.plugins.plugin import FILTERING, SCORING, Cause, Plugin
from bayplan.fit.plugins.pod_topology_spread.explanation import EXPLAINING
from bayplan.fit.plugins.pod_topology_spread.filter import HINTS, NAME, compile_filter
from bayplan.fit.plugins.pod_topology_spread.score import compile_score

PLUGIN = Plugin(
    name=NAME,
    points=(*FILTERING, *SCORING),
    node_fields=("metadata.labels", "spec.taints"),
    cause=Cause.SPREAD,
    filters=(compile_filter,),
    score=compile_score,
    weight=2,
    hints=HINTS,
    explaining=EXPLAINING,
    node_labels=topology_keys,
)
