"""NodeAffinity: the nodes that a pod may, or would rather, go to."""

from __future__ import annotations

from bayplan.fit.plugins.node_affinity.explanation import EXPLAINING, label_keys, steps_before_nodes
from bayplan.fit.plugins.node_affinity.explanation import NOT_ASKED as EXPLAINED_NOT_ASKED
from bayplan.fit.plugins.node_affinity.filter import (
    HINTS,
    NAME,
    compile_added,
    compile_filter,
    refusal_before_nodes,
)
from bayplan.fit.plugins.node_affinity.named_nodes import NAME as NOT_ASKED
from bayplan.fit.plugins.node_affinity.named_nodes import can_be_pinned
from bayplan.fit.plugins.node_affinity.named_nodes import compile_filter as compile_named
from bayplan.fit.plugins.node_affinity.score import compile_score
from bayplan.fit.plugins.plugin import FILTERING, SCORING, Cause, Plugin

PLUGIN = Plugin(
    name=NAME,
    explaining=EXPLAINING,
    node_labels=label_keys,
    other_names={NOT_ASKED: EXPLAINED_NOT_ASKED},
    steps_before_nodes=steps_before_nodes,
    points=(*FILTERING, *SCORING),
    node_fields=("metadata.name", "metadata.labels"),
    cause=Cause.AFFINITY,
    for_good=True,
    pre_filter=refusal_before_nodes,
    narrow=compile_named,
    pins=can_be_pinned,
    filters=(compile_added, compile_filter),
    score=compile_score,
    weight=2,
    hints=HINTS,
)
