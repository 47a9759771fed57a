"""The loop: look, tidy up, decide, act, tell; again and again.

Whatever fails ends one loop and not the next. Every loop keeps its
plan.
"""

from __future__ import annotations

import logging
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from bayplan.autoscaler import events
from bayplan.autoscaler.actuation.cleanup import GivingUp, Tidying
from bayplan.autoscaler.actuation.node_removal import GivingBack
from bayplan.autoscaler.actuation.scale_up import Desk, buy
from bayplan.autoscaler.cloudstate.reader import Cloud, CloudReader
from bayplan.autoscaler.clusterstate.readiness import Standing
from bayplan.autoscaler.clusterview import Sight, World
from bayplan.autoscaler.estimate.limits import ALL_NODES
from bayplan.autoscaler.estimate.options import Purchase
from bayplan.autoscaler.estimate.upcoming import NOTHING, counted
from bayplan.autoscaler.expanders.chain import Choosing
from bayplan.autoscaler.options import AutoscalerOptions
from bayplan.autoscaler.plan import Plan, ScaleUp
from bayplan.autoscaler.scaleup.orchestrator import Decision, decide, scale_ups
from bayplan.autoscaler.status.report import Report
from bayplan.base.clock import Clock
from bayplan.client.errors import ClientError
from bayplan.kube.pods import Pod
from bayplan.nodegroups import NodeGroupError

log = logging.getLogger(__name__)
UNHEALTHY = "too many nodes are unready: nothing is bought or given back"
SILENT = "the cloud has not answered for node group {} yet: {}"
FROM_ZERO = "the cluster has no ready node, and --scale-up-from-zero is off"


@dataclass(frozen=True, slots=True, eq=False)
class Parts:
    """What a loop is made of."""

    reader: CloudReader
    sight: Sight
    desk: Desk
    tidying: Tidying
    giving_up: GivingUp
    choosing: Choosing
    giving_back: GivingBack
    report: Report


class Loop:
    """One autoscaler at work."""

    def __init__(self, parts: Parts, options: AutoscalerOptions, clock: Clock) -> None:
        self._parts = parts
        self._options = options
        self._clock = clock
        self._remembered = NOTHING
        self._silent: dict[str, datetime] = {}
        self.plans: deque[Plan] = deque(maxlen=max(1, options.plans_kept))
        """What the last loops decided, the newest last."""

    async def run(self) -> None:
        """Loop until cancelled."""
        while True:
            began = self._clock.monotonic()
            await self.once()
            took = self._clock.monotonic() - began
            await self._clock.sleep(max(0.0, self._options.scan_interval - took))

    async def close(self) -> None:
        """Leave what is under way to whoever comes next."""
        await self._parts.giving_back.actuator.close()

    async def once(self) -> Plan:
        """One loop, whatever happens."""
        metrics = self._parts.desk.metrics
        metrics.active("main", self._clock.now())
        try:
            with metrics.timed("main", self._clock):
                plan = await self._loop()
        except NodeGroupError as error:
            plan = self._failed("cloudProviderError", f"the cloud does not answer: {error}")
        except ClientError as error:
            plan = self._failed("apiCallError", str(error))
        except Exception as error:
            log.exception("a loop ended in a way that nobody thought of")
            plan = self._failed("internalError", f"{type(error).__name__}: {error}")
        self.plans.append(plan)
        return plan

    def _failed(self, kind: str, why: str) -> Plan:
        log.warning("%s", why)
        self._parts.desk.metrics.errors.labels(kind).inc()
        return Plan(self._clock.now(), "failed", why)

    async def _loop(self) -> Plan:
        parts = self._parts
        cloud = await parts.reader.read()
        now = self._clock.now()
        parts.sight.take(cloud, now)
        parts.report.problems(cloud)
        given = await parts.tidying.tidy(cloud, now) + await parts.giving_up.give_up(now)
        if given:
            plan = Plan(
                now, "removing", f"{given} instances that will never be nodes are given back"
            )
        else:
            plan = await self._decide(cloud, now)
        await parts.report.write(cloud, plan, now)
        return plan

    async def _decide(self, cloud: Cloud, now: datetime) -> Plan:
        parts = self._parts
        pods = parts.sight.counting(now)
        expander = await parts.choosing.expander(pods.pods, now)
        world = parts.sight.world(cloud, pods, now)
        stop = self._stop(cloud, world, now)
        if stop:
            world = replace(world, closed=dict.fromkeys(world.groups, stop))
        upcoming = counted(world.upcoming)
        waiting = {pod.metadata.uid: pod for pod in world.waiting}
        self._remembered = self._remembered.kept(upcoming, waiting)
        with parts.desk.metrics.timed("scaleUp", self._clock):
            found = decide(world, expander, self._remembered)
        found = self._with_minimum(found, world)
        parts.desk.metrics.waiting(found.causes, pods.aside)
        done = await self._act(found, world, upcoming)
        plan = _plan(found, done, world, upcoming, pods.aside)
        if stop:
            parts.giving_back.forget()
            return replace(plan, status="unhealthy", message=stop)
        return plan if done else await self._give_back(plan, world)

    async def _give_back(self, plan: Plan, world: World) -> Plan:
        """Give back what is not needed, in a loop that buys nothing."""
        with self._parts.desk.metrics.timed("scaleDown", self._clock):
            given = await self._parts.giving_back.loop(world, plan.fits)
        if given.removals:
            self._parts.desk.metrics.active("scaleDown", world.now)
            plan = replace(plan, status="removing")
        return replace(
            plan,
            removals=given.removals,
            stays=given.stays,
            candidates=given.candidates,
        )

    def _stop(self, cloud: Cloud, world: World, now: datetime) -> str:
        """Why nothing may be bought at all now; empty if it may."""
        sight = self._parts.sight
        self._silent = {name: self._silent.get(name, now) for name in cloud.silent}
        patience = timedelta(seconds=self._options.max_node_provision_time)
        for name, since in self._silent.items():
            if now < since + patience:
                return SILENT.format(name, cloud.silent[name])
        if not sight.registry.is_healthy(sight.fleet):
            return UNHEALTHY
        if not self._options.scale_up_from_zero and world.waiting:
            return "" if sight.fleet.standing(Standing.READY) else FROM_ZERO
        return ""

    def _with_minimum(self, found: Decision, world: World) -> Decision:
        """The decision, with what groups lack of their minimum."""
        if not self._options.enforce_node_group_min_size:
            return found
        bought = {one.view.id for one in found.purchases}
        more = [
            Purchase(view, missing, ((),) * missing)
            for name, view in sorted(world.groups.items())
            if (missing := view.group.min_size - view.target) > 0
            and name not in bought
            and name not in world.closed
        ]
        return replace(found, purchases=(*found.purchases, *more))

    async def _act(
        self, found: Decision, world: World, upcoming: Mapping[str, int]
    ) -> list[ScaleUp]:
        """Buy, remember what for, and tell everybody."""
        desk = self._parts.desk
        wanted = scale_ups(found.purchases, world.groups)
        for one in wanted:
            self._parts.reader.expect(one.group, one.to_size)
        groups = await buy(wanted, world.groups, desk)
        done = [one for one in wanted if one.group in groups]
        bought = [one for one in found.purchases if one.view.id in groups]
        self._remembered = self._remembered.with_more(upcoming, bought)
        self._parts.giving_back.bought(groups, world)
        helped = [pod for one in bought for pods in one.pods for pod in pods]
        self._tell(found, helped, done, world)
        return done

    def _tell(
        self, found: Decision, helped: Sequence[Pod], done: Sequence[ScaleUp], world: World
    ) -> None:
        desk = self._parts.desk
        if done:
            notice = events.triggered(done)
            for pod in helped:
                desk.teller.about(pod, notice)
        by_key = {pod.key: pod for pod in world.waiting} if found.left else {}
        for left in found.left:
            desk.teller.about(by_key[left.pod], events.not_triggered(left))
        if any(ALL_NODES in left.by_group.get(g, ()) for left in found.left for g in left.by_group):
            there = len(world.snapshot.cluster.slots)
            desk.teller.about_all(events.nodes_reached(self._options.max_nodes_total, there))
            desk.metrics.skipped.labels("up", "MaxNodesTotalReached").inc()


def _plan(
    found: Decision,
    done: Sequence[ScaleUp],
    world: World,
    upcoming: Mapping[str, int],
    aside: Mapping[str, int],
) -> Plan:
    waits = bool(found.left or found.fits)
    return Plan(
        time=world.now,
        status="bought" if done else "waiting" if waits else "nothing to do",
        fits=found.fits,
        upcoming=upcoming,
        scale_ups=tuple(done),
        considered=found.considered,
        mixed=found.mixed,
        notes=found.notes,
        pending=found.left,
        set_aside=Counter(aside),
    )
