"""Scale-ups, done: the one place where nodes are bought.

A group is never taken above its maximum, whatever the plan says. A scale-up that fails lets its
group back off; one whose answer never came may have been made, and then shows in the group's
target.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bayplan.autoscaler import events
from bayplan.autoscaler.cloudstate.backoff import Backoff
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
    """What whoever acts on the cloud needs."""

    provider: Provider
    registry: ClusterStateRegistry
    backoff: Backoff
    recorder: AutoscalerEvents
    metrics: AutoscalerMetrics
    clock: Clock

    def fail(self, group: str, code: str, message: str) -> None:
        """A group failed: it rests, and that is counted."""
        self.backoff.fail(group, self.clock.now(), code, message)
        self.metrics.failed.labels(code).inc()


async def execute_scale_ups(
    wanted: Sequence[ScaleUp], views: Mapping[str, NodeGroupView], context: ActuationContext
) -> set[str]:
    """Buy all this; returns the groups that were made larger."""
    done: set[str] = set()
    for one in wanted:
        if one.count <= 0 or one.to_size > one.max_size:
            log.error("not bought, since it is out of bounds: %s", one)
            continue
        log.info("buys", extra={"group": one.group, "size": one.to_size, "was": one.from_size})
        try:
            await with_timeout(context.provider.increase(one.group, one.count))
        except NodeGroupError as error:
            log.warning("group %s could not be made larger: %s", one.group, error)
            context.recorder.about_all(events.failed(one.group, str(error)))
            context.fail(one.group, code_of(error), str(error))
            continue
        done.add(one.group)
        _bought(one, views[one.group], context)
    return done


def _bought(one: ScaleUp, view: NodeGroupView, context: ActuationContext) -> None:
    now = context.clock.now()
    context.registry.order(one.group, one.count, view.options.max_node_provision_time, now)
    context.recorder.about_all(events.scaled_up(one))
    context.metrics.bought.inc(one.count)
    context.metrics.active("scaleUp", now)
