"""NodeResourcesFit: what a pod requests must be free; emptier nodes are better."""

from __future__ import annotations

from bayplan.fit.plugins.node_resources_fit.capacity import CAPACITY
from bayplan.fit.plugins.node_resources_fit.explanation import EXPLAINING
from bayplan.fit.plugins.node_resources_fit.filter import HINTS, NAME, compile_filter
from bayplan.fit.plugins.node_resources_fit.score import compile_score
from bayplan.fit.plugins.plugin import FILTERING, SCORING, Cause, Plugin

PLUGIN = Plugin(
    name=NAME,
    points=(*FILTERING, *SCORING),
    node_fields=("status.allocatable",),
    cause=Cause.RESOURCES,
    for_good=True,
    filters=(compile_filter,),
    score=compile_score,
    hints=HINTS,
    capacity=CAPACITY,
    explaining=EXPLAINING,
)
