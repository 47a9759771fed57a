"""The main loop: read, clean up, decide, act, report.

An error ends one loop, not the next. The plans of the last loops are kept.
"""

from __future__ import annotations

import logging
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from bayplan.autoscaler import events
from bayplan.autoscaler.actuation.cleanup import FailedInstanceCleanup
from bayplan.autoscaler.actuation.missing_drivers import MissingDriverCleanup
from bayplan.autoscaler.actuation.node_removal import NodeRemoval
from bayplan.autoscaler.actuation.scale_up import ActuationContext, execute_scale_ups
from bayplan.autoscaler.cloudstate.reader import CloudReader, CloudState
from bayplan.autoscaler.clusterstate.readiness import NodeReadiness
from bayplan.autoscaler.clusterview import ClusterView, ClusterViewBuilder
from bayplan.autoscaler.estimate.limits import ALL_NODES
from bayplan.autoscaler.estimate.upcoming_nodes import NO_PLANNED_PODS, count_upcoming
from bayplan.autoscaler.expanders.chain import ExpanderFactory
from bayplan.autoscaler.options import AutoscalerOptions
from bayplan.autoscaler.plan import AutoscalerPlan, ScaleUp
from bayplan.autoscaler.scaleup.orchestrator import ScaleUpDecision, decide, scale_ups_of
from bayplan.autoscaler.status.report import StatusReport
from bayplan.base.clock import Clock
from bayplan.client.errors import ClientError
from bayplan.kube.pods import Pod
from bayplan.nodegroups import NodeGroupError

log = logging.getLogger(__name__)
UNHEALTHY = "too many nodes are unready: no scale-up or scale-down"
UNANSWERED = "the cloud provider has not answered for node group {} yet: {}"
FROM_ZERO = "the cluster has no ready node, and --scale-up-from-zero is off"


@dataclass(frozen=True, slots=True, eq=False)
class LoopParts:
    """The parts of a loop."""

    reader: CloudReader
    builder: ClusterViewBuilder
    context: ActuationContext
    instance_cleanup: FailedInstanceCleanup
    node_cleanup: MissingDriverCleanup
    expander_factory: ExpanderFactory
    node_removal: NodeRemoval
    report: StatusReport


class Loop:
    """The main loop of one autoscaler."""

    def __init__(self, parts: LoopParts, options: AutoscalerOptions, clock: Clock) -> None:
        self._parts = parts
        self._options = options
        self._clock = clock
        self._planned = NO_PLANNED_PODS
        self._unanswered: dict[str, datetime] = {}
        self.plans: deque[AutoscalerPlan] = deque(maxlen=max(1, options.plans_kept))
        """The plans of the last loops, the newest last."""

    async def run(self) -> None:
        """Loop until cancelled."""
        while True:
            began = self._clock.monotonic()
            await self.run_once()
            took = self._clock.monotonic() - began
            await self._clock.sleep(max(0.0, self._options.scan_interval - took))

    async def close(self) -> None:
        """Stop; node removals in progress are continued by the next leader."""
        await self._parts.node_removal.actuator.close()

    async def run_once(self) -> AutoscalerPlan:
        """Run one loop and return its plan, also if it failed."""
        metrics = self._parts.context.metrics
        metrics.active("main", self._clock.now())
        try:
            with metrics.timed("main", self._clock):
                plan = await self._loop()
        except NodeGroupError as error:
            plan = self._failed("cloudProviderError", f"cloud provider error: {error}")
        except ClientError as error:
            plan = self._failed("apiCallError", str(error))
        except Exception as error:
            log.exception("unexpected error in the main loop")
            plan = self._failed("internalError", f"{type(error).__name__}: {error}")
        self.plans.append(plan)
        return plan

    def _failed(self, kind: str, why: str) -> AutoscalerPlan:
        log.warning("%s", why)
        self._parts.context.metrics.errors.labels(kind).inc()
        return AutoscalerPlan(self._clock.now(), "failed", why)

    async def _loop(self) -> AutoscalerPlan:
        parts = self._parts
        cloud = await parts.reader.read()
        now = self._clock.now()
        parts.builder.update(cloud, now)
        parts.report.problems(cloud)
        removed = await parts.instance_cleanup.clean_up(cloud, now)
        removed += await parts.node_cleanup.clean_up(now)
        if removed:
            plan = AutoscalerPlan(now, "removing", f"removed {removed} failed instances")
        else:
            plan = await self._decide(cloud, now)
        await parts.report.write(cloud, plan, now)
        return plan

    async def _decide(self, cloud: CloudState, now: datetime) -> AutoscalerPlan:
        parts = self._parts
        pods = parts.builder.unschedulable_pods(now)
        expander = await parts.expander_factory.expander(pods.pods, now)
        cluster_view = parts.builder.build(cloud, pods, now)
        stop = self._reason_to_stop(cloud, cluster_view, now)
        if stop:
            cluster_view = replace(
                cluster_view, skipped_groups=dict.fromkeys(cluster_view.groups, stop)
            )
        upcoming = count_upcoming(cluster_view.upcoming)
        waiting = {pod.metadata.uid: pod for pod in cluster_view.unschedulable_pods}
        self._planned = self._planned.still_pending(upcoming, waiting)
        with parts.context.metrics.timed("scaleUp", self._clock):
            found = decide(cluster_view, expander, self._planned)
        parts.context.metrics.waiting(found.causes, pods.ignored)
        done = await self._scale_up(found, cluster_view, upcoming)
        plan = _plan(found, done, cluster_view, upcoming, pods.ignored)
        if stop:
            parts.node_removal.forget()
            return replace(plan, status="unhealthy", message=stop)
        return plan if done else await self._scale_down(plan, cluster_view)

    async def _scale_down(self, plan: AutoscalerPlan, cluster_view: ClusterView) -> AutoscalerPlan:
        """Scale down, in a loop that does not scale up."""
        with self._parts.context.metrics.timed("scaleDown", self._clock):
            found = await self._parts.node_removal.loop(cluster_view, plan.fits)
        if found.removals:
            self._parts.context.metrics.active("scaleDown", cluster_view.now)
            plan = replace(plan, status="removing")
        return replace(
            plan,
            removals=found.removals,
            unremovable=found.unremovable,
            candidates=found.candidates,
        )

    def _reason_to_stop(self, cloud: CloudState, cluster_view: ClusterView, now: datetime) -> str:
        """Why no group may be scaled up now; empty if it may."""
        builder = self._parts.builder
        self._unanswered = {name: self._unanswered.get(name, now) for name in cloud.unanswered}
        timeout = timedelta(seconds=self._options.max_node_provision_time)
        for name, since in self._unanswered.items():
            if now < since + timeout:
                return UNANSWERED.format(name, cloud.unanswered[name])
        if not builder.registry.is_healthy(builder.node_states):
            return UNHEALTHY
        if not self._options.scale_up_from_zero and cluster_view.unschedulable_pods:
            return "" if builder.node_states.in_state(NodeReadiness.READY) else FROM_ZERO
        return ""

    async def _scale_up(
        self, found: ScaleUpDecision, cluster_view: ClusterView, upcoming: Mapping[str, int]
    ) -> list[ScaleUp]:
        """Execute the scale-ups, remember their pods, and record events."""
        context = self._parts.context
        wanted = scale_ups_of(found.new_nodes, cluster_view.groups)
        for one in wanted:
            self._parts.reader.expect(one.group, one.to_size)
        groups = await execute_scale_ups(wanted, cluster_view.groups, context)
        done = [one for one in wanted if one.group in groups]
        added = [one for one in found.new_nodes if one.view.id in groups]
        self._planned = self._planned.with_new_nodes(upcoming, added)
        self._parts.node_removal.note_scale_up(groups, cluster_view)
        helped = [pod for one in added for pods in one.pods for pod in pods]
        self._record_events(found, helped, done, cluster_view)
        return done

    def _record_events(
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
        by_key = (
            {pod.key: pod for pod in cluster_view.unschedulable_pods} if found.unschedulable else {}
        )
        for left in found.unschedulable:
            context.recorder.about(by_key[left.pod], events.not_triggered(left))
        if any(
            ALL_NODES in left.by_group.get(g, ())
            for left in found.unschedulable
            for g in left.by_group
        ):
            there = len(cluster_view.snapshot.cluster.slots)
            context.recorder.about_all(events.nodes_reached(self._options.max_nodes_total, there))
            context.metrics.skipped.labels("up", "MaxNodesTotalReached").inc()


def _plan(
    found: ScaleUpDecision,
    done: Sequence[ScaleUp],
    cluster_view: ClusterView,
    upcoming: Mapping[str, int],
    ignored: Mapping[str, int],
) -> AutoscalerPlan:
    waits = bool(found.unschedulable or found.fits)
    return AutoscalerPlan(
        time=cluster_view.now,
        status="scaling up" if done else "waiting" if waits else "nothing to do",
        fits=found.fits,
        upcoming=upcoming,
        scale_ups=tuple(done),
        considered=found.considered,
        mixed=found.mixed,
        notes=found.notes,
        pending=found.unschedulable,
        ignored_pods=Counter(ignored),
    )
