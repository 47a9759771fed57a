"""VolumeBinding: claims must be bound to volumes that a node reaches, or be served there."""

from __future__ import annotations

from bayplan.fit.plugins.plugin import BINDING, FILTERING, Cause, Plugin
from bayplan.fit.plugins.volume_binding.claims import claim_steps
from bayplan.fit.plugins.volume_binding.explanation import EXPLAINING
from bayplan.fit.plugins.volume_binding.filter import (
    HINTS,
    NAME,
    compile_filter,
    refusal_before_nodes,
)

PLUGIN = Plugin(
    name=NAME,
    points=(*FILTERING, *BINDING),
    node_fields=("metadata.name", "metadata.labels"),
    cause=Cause.VOLUMES,
    pre_filter=refusal_before_nodes,
    filters=(compile_filter,),
    hints=HINTS,
    explaining=EXPLAINING,
    steps_before_nodes=claim_steps,
)
