"""Executes scale-ups: the only place that increases target sizes.

A group is never scaled above its maximum size, whatever the plan. A scale-up that fails backs its
group off; one without an answer may have been executed, and then shows in the group's target size.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bayplan.autoscaler import events
from bayplan.autoscaler.cloudstate.backoff import NodeGroupBackoff
from bayplan.autoscaler.cloudstate.reader import code_of, with_timeout
from bayplan.autoscaler.clusterstate.registry import ClusterStateRegistry
from bayplan.autoscaler.events import AutoscalerEvents
from bayplan.autoscaler.metrics import AutoscalerMetrics
from bayplan.autoscaler.plan import ScaleUp
from bayplan.autoscaler.templates import NodeGroupView
from bayplan.base.clock import Clock
from bayplan.nodegroups import NodeGroupError, Provider

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, eq=False)
class ActuationContext:
    """The clients, options and recorders of scale-up and cleanup."""

    provider: Provider
    registry: ClusterStateRegistry
    backoff: NodeGroupBackoff
    recorder: AutoscalerEvents
    metrics: AutoscalerMetrics
    clock: Clock

    def fail(self, group: str, code: str, message: str) -> None:
        """Back a group off after a failure, and count it."""
        self.backoff.back_off(group, self.clock.now(), code, message)
        self.metrics.failed.labels(code).inc()


async def execute_scale_ups(
    wanted: Sequence[ScaleUp], views: Mapping[str, NodeGroupView], context: ActuationContext
) -> set[str]:
    """Execute scale-ups; return the groups that were scaled up."""
    done: set[str] = set()
    for one in wanted:
        if one.count <= 0 or one.to_size > one.max_size:
            log.error("scale-up is out of bounds, not executed: %s", one)
            continue
        sizes = {"group": one.group, "size": one.to_size, "was": one.from_size}
        log.info("scaling up node group", extra=sizes)
        try:
            await with_timeout(context.provider.increase(one.group, one.count))
        except NodeGroupError as error:
            log.warning("failed to scale up node group %s: %s", one.group, error)
            context.recorder.about_all(events.failed(one.group, str(error)))
            context.fail(one.group, code_of(error), str(error))
            continue
        done.add(one.group)
        _record_scale_up(one, views[one.group], context)
    return done


def _record_scale_up(one: ScaleUp, view: NodeGroupView, context: ActuationContext) -> None:
    now = context.clock.now()
    context.registry.register_scale_up(
        one.group, one.count, view.options.max_node_provision_time, now
    )
    context.recorder.about_all(events.scaled_up(one))
    context.metrics.scaled_up.inc(one.count)
    context.metrics.active("scaleUp", now)
