"""What was decided, done: the one place where nodes are bought.

A group is never taken above its maximum, whatever the plan says. A purchase that fails lets its
group rest; one whose answer never came may have been made, and then shows in the group's target.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from bayplan.autoscaler.candidates import Purchase
from bayplan.autoscaler.cloud.backoff import Backoff
from bayplan.autoscaler.cloud.calling import code_of, patiently
from bayplan.autoscaler.cloud.registry import Registry
from bayplan.autoscaler.groups import GroupView
from bayplan.autoscaler.plan import ScaleUp
from bayplan.autoscaler.telling import messages
from bayplan.autoscaler.telling.metrics import AutoscalerMetrics
from bayplan.autoscaler.telling.teller import Teller
from bayplan.base.clock import Clock
from bayplan.nodegroups import NodeGroupError, Provider

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, eq=False)
class Desk:
    """What whoever acts on the cloud needs."""

    provider: Provider
    registry: Registry
    backoff: Backoff
    teller: Teller
    metrics: AutoscalerMetrics
    clock: Clock

    def fail(self, group: str, code: str, message: str) -> None:
        """A group failed: it rests, and that is counted."""
        self.backoff.fail(group, self.clock.now(), code, message)
        self.metrics.failed.labels(code).inc()


def scale_ups(purchases: Iterable[Purchase], views: Mapping[str, GroupView]) -> list[ScaleUp]:
    """The purchases, one for each group, in the order in which groups came first."""
    pods: dict[str, list[tuple[str, ...]]] = {}
    for one in purchases:
        keys = [tuple(pod.key for pod in node) for node in one.pods]
        pods.setdefault(one.view.id, []).extend(keys)
    found = []
    for name, nodes in pods.items():
        view, count = views[name], len(nodes)
        cost = None if view.price is None else view.price * count
        size, most = view.target, view.group.max_size
        found.append(ScaleUp(name, size, size + count, most, tuple(nodes), cost))
    return found


async def buy(wanted: Sequence[ScaleUp], views: Mapping[str, GroupView], desk: Desk) -> set[str]:
    """Buy all this; returns the groups that were made larger."""
    done: set[str] = set()
    for one in wanted:
        if one.count <= 0 or one.to_size > one.max_size:
            log.error("not bought, since it is out of bounds: %s", one)
            continue
        log.info("buys", extra={"group": one.group, "size": one.to_size, "was": one.from_size})
        try:
            await patiently(desk.provider.increase(one.group, one.count))
        except NodeGroupError as error:
            log.warning("group %s could not be made larger: %s", one.group, error)
            desk.teller.about_all(messages.failed(one.group, str(error)))
            desk.fail(one.group, code_of(error), str(error))
            continue
        done.add(one.group)
        _bought(one, views[one.group], desk)
    return done


def _bought(one: ScaleUp, view: GroupView, desk: Desk) -> None:
    now = desk.clock.now()
    desk.registry.order(one.group, one.count, view.options.max_node_provision_time, now)
    desk.teller.about_all(messages.scaled_up(one))
    desk.metrics.bought.inc(one.count)
    desk.metrics.active("scaleUp", now)
