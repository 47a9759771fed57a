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
from bayplan.autoscaler.actuation.cleanup import FailedInstanceCleanup, LateNodeCleanup
from bayplan.autoscaler.actuation.node_removal import NodeRemoval
from bayplan.autoscaler.actuation.scale_up import ActuationContext, execute_scale_ups
from bayplan.autoscaler.cloudstate.reader import CloudReader, CloudState
from bayplan.autoscaler.clusterstate.readiness import NodeReadiness
from bayplan.autoscaler.clusterview import ClusterView, ClusterViewBuilder
from bayplan.autoscaler.estimate.limits import ALL_NODES
from bayplan.autoscaler.estimate.options import NewNodes
from bayplan.autoscaler.estimate.upcoming import NOTHING, counted
from bayplan.autoscaler.expanders.chain import ExpanderFactory
from bayplan.autoscaler.options import AutoscalerOptions
from bayplan.autoscaler.plan import Plan, ScaleUp
from bayplan.autoscaler.scaleup.orchestrator import ScaleUpDecision, decide, scale_ups_of
from bayplan.autoscaler.status.report import StatusReport
from bayplan.base.clock import Clock
from bayplan.client.errors import ClientError
from bayplan.kube.pods import Pod
from bayplan.nodegroups import NodeGroupError

log = logging.getLogger(__name__)
UNHEALTHY = "too many nodes are unready: nothing is bought or given back"
SILENT = "the cloud has not answered for node group {} yet: {}"
FROM_ZERO = "the cluster has no ready node, and --scale-up-from-zero is off"


@dataclass(frozen=True, slots=True, eq=False)
class LoopParts:
    """What a loop is made of."""

    reader: CloudReader
    builder: ClusterViewBuilder
    context: ActuationContext
    instance_cleanup: FailedInstanceCleanup
    node_cleanup: LateNodeCleanup
    expander_factory: ExpanderFactory
    node_removal: NodeRemoval
    report: StatusReport


class Loop:
    """One autoscaler at work."""

    def __init__(self, parts: LoopParts, options: AutoscalerOptions, clock: Clock) -> None:
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
        await self._parts.node_removal.actuator.close()

    async def once(self) -> Plan:
        """One loop, whatever happens."""
        metrics = self._parts.context.metrics
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
        self._parts.context.metrics.errors.labels(kind).inc()
        return Plan(self._clock.now(), "failed", why)

    async def _loop(self) -> Plan:
        parts = self._parts
        cloud = await parts.reader.read()
        now = self._clock.now()
        parts.builder.take(cloud, now)
        parts.report.problems(cloud)
        given = await parts.instance_cleanup.clean_up(
            cloud, now
        ) + await parts.node_cleanup.clean_up(now)
        if given:
            plan = Plan(
                now, "removing", f"{given} instances that will never be nodes are given back"
            )
        else:
            plan = await self._decide(cloud, now)
        await parts.report.write(cloud, plan, now)
        return plan

    async def _decide(self, cloud: CloudState, now: datetime) -> Plan:
        parts = self._parts
        pods = parts.builder.unschedulable_pods(now)
        expander = await parts.expander_factory.expander(pods.pods, now)
        cluster_view = parts.builder.build(cloud, pods, now)
        stop = self._stop(cloud, cluster_view, now)
        if stop:
            cluster_view = replace(cluster_view, closed=dict.fromkeys(cluster_view.groups, stop))
        upcoming = counted(cluster_view.upcoming)
        waiting = {pod.metadata.uid: pod for pod in cluster_view.waiting}
        self._remembered = self._remembered.kept(upcoming, waiting)
        with parts.context.metrics.timed("scaleUp", self._clock):
            found = decide(cluster_view, expander, self._remembered)
        found = self._with_minimum(found, cluster_view)
        parts.context.metrics.waiting(found.causes, pods.aside)
        done = await self._act(found, cluster_view, upcoming)
        plan = _plan(found, done, cluster_view, upcoming, pods.aside)
        if stop:
            parts.node_removal.forget()
            return replace(plan, status="unhealthy", message=stop)
        return plan if done else await self._scale_down(plan, cluster_view)

    async def _scale_down(self, plan: Plan, cluster_view: ClusterView) -> Plan:
        """Give back what is not needed, in a loop that buys nothing."""
        with self._parts.context.metrics.timed("scaleDown", self._clock):
            given = await self._parts.node_removal.loop(cluster_view, plan.fits)
        if given.removals:
            self._parts.context.metrics.active("scaleDown", cluster_view.now)
            plan = replace(plan, status="removing")
        return replace(
            plan,
            removals=given.removals,
            stays=given.stays,
            candidates=given.candidates,
        )

    def _stop(self, cloud: CloudState, cluster_view: ClusterView, now: datetime) -> str:
        """Why nothing may be bought at all now; empty if it may."""
        builder = self._parts.builder
        self._silent = {name: self._silent.get(name, now) for name in cloud.silent}
        patience = timedelta(seconds=self._options.max_node_provision_time)
        for name, since in self._silent.items():
            if now < since + patience:
                return SILENT.format(name, cloud.silent[name])
        if not builder.registry.is_healthy(builder.node_states):
            return UNHEALTHY
        if not self._options.scale_up_from_zero and cluster_view.waiting:
            return "" if builder.node_states.standing(NodeReadiness.READY) else FROM_ZERO
        return ""

    def _with_minimum(self, found: ScaleUpDecision, cluster_view: ClusterView) -> ScaleUpDecision:
        """The decision, with what groups lack of their minimum."""
        if not self._options.enforce_node_group_min_size:
            return found
        bought = {one.view.id for one in found.purchases}
        more = [
            NewNodes(view, missing, ((),) * missing)
            for name, view in sorted(cluster_view.groups.items())
            if (missing := view.group.min_size - view.target) > 0
            and name not in bought
            and name not in cluster_view.closed
        ]
        return replace(found, purchases=(*found.purchases, *more))

    async def _act(
        self, found: ScaleUpDecision, cluster_view: ClusterView, upcoming: Mapping[str, int]
    ) -> list[ScaleUp]:
        """Buy, remember what for, and tell everybody."""
        context = self._parts.context
        wanted = scale_ups_of(found.purchases, cluster_view.groups)
        for one in wanted:
            self._parts.reader.expect(one.group, one.to_size)
        groups = await execute_scale_ups(wanted, cluster_view.groups, context)
        done = [one for one in wanted if one.group in groups]
        bought = [one for one in found.purchases if one.view.id in groups]
        self._remembered = self._remembered.with_more(upcoming, bought)
        self._parts.node_removal.bought(groups, cluster_view)
        helped = [pod for one in bought for pods in one.pods for pod in pods]
        self._tell(found, helped, done, cluster_view)
        return done

    def _tell(
        self,
        found: ScaleUpDecision,
        helped: Sequence[Pod],
        done: Sequence[ScaleUp],
        cluster_view: ClusterView,
    ) -> None:
        context = self._parts.context
        if done:
            notice = events.triggered(done)
            for pod in helped:
                context.recorder.about(pod, notice)
        by_key = {pod.key: pod for pod in cluster_view.waiting} if found.left else {}
        for left in found.left:
            context.recorder.about(by_key[left.pod], events.not_triggered(left))
        if any(ALL_NODES in left.by_group.get(g, ()) for left in found.left for g in left.by_group):
            there = len(cluster_view.snapshot.cluster.slots)
            context.recorder.about_all(events.nodes_reached(self._options.max_nodes_total, there))
            context.metrics.skipped.labels("up", "MaxNodesTotalReached").inc()


def _plan(
    found: ScaleUpDecision,
    done: Sequence[ScaleUp],
    cluster_view: ClusterView,
    upcoming: Mapping[str, int],
    aside: Mapping[str, int],
) -> Plan:
    waits = bool(found.left or found.fits)
    return Plan(
        time=cluster_view.now,
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
