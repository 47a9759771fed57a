"""NodeVolumeLimits: a node can attach only so many volumes of a driver."""

from __future__ import annotations

from bayplan.fit.plugins.node_volume_limits.capacity import CAPACITY
from bayplan.fit.plugins.node_volume_limits.explanation import EXPLAINER
from bayplan.fit.plugins.node_volume_limits.filter import (
    HINTS,
    NAME,
    claims_of_coming,
    compile_filter,
)
from bayplan.fit.plugins.plugin import FILTERING, Cause, SchedulerPlugin

PLUGIN = SchedulerPlugin(
    name=NAME,
    points=FILTERING,
    node_fields=("metadata.labels", "status.allocatable"),
    cause=Cause.VOLUMES,
    refuses_for_good=True,
    names_drivers=True,
    sets_apart=claims_of_coming,
    filters=(compile_filter,),
    hints=HINTS,
    capacity=CAPACITY,
    has_other_rules=lambda request: request.plugins.volume_rules is not None,
    explainer=EXPLAINER,
)
