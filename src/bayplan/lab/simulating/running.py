"""One run: a cluster in virtual time with our daemons in it, measured."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from pathlib import Path

from bayplan.autoscaler.options import AutoscalerOptions
from bayplan.base.garbage import rarely_collected
from bayplan.embedded.apiserver.store.entry import Key
from bayplan.embedded.apiserver.store.watchcache import Change
from bayplan.embedded.control.facts import PodFacts
from bayplan.embedded.simulation.clusterfile import ClusterSpec, cluster_of
from bayplan.fit import Profile, Snapshot
from bayplan.fit.explanation.cause import why_it_waits
from bayplan.fit.explanation.waiting import likeness
from bayplan.fit.plugins.plugin import Cause
from bayplan.kube.gates import FeatureGates
from bayplan.kube.pods import Pod
from bayplan.lab.crew import Aboard, Crew, members, muster
from bayplan.lab.lab import Daemon
from bayplan.lab.measuring import Grid, Measured, Meter
from bayplan.lab.simulating.orders import Order, Variant
from bayplan.lab.traces.csvfile import rows
from bayplan.lab.traces.schedule import TraceSchedule
from bayplan.lab.virtual import VirtualLab, run_virtually

Progress = Callable[[float], None]
"""Told the share of the run that is over."""
TICKS = 200
_REMEMBERED = 10_000


def carry_out(
    order: Order, progress: Progress = lambda _: None, *, beside: Sequence[Daemon] = ()
) -> Measured:
    """Run it, with others who look on beside our daemons; ConfigFileError if the API server refuses
    what the cluster file says.
    """
    with rarely_collected():
        return run_virtually(_carry_out(order, progress, beside))


async def _carry_out(order: Order, progress: Progress, beside: Sequence[Daemon]) -> Measured:
    variant = order.variant
    spec = replace(spec_of(variant), seed=order.seed)
    aboard = muster(crew_of(variant), spec, lambda: lab.simulation.provider)
    daemons = (*aboard.daemons, *beside)
    lab = VirtualLab(aboard.spec, daemons, webhooks=aboard.webhooks)
    meter = Meter(lab.simulation, Grid.over(order.seconds, order.points), Reasons(aboard))
    lab.plane.store.listeners += [meter.observe, _ticking(lab, order.seconds, progress)]
    if order.trace:
        trace = rows(order.trace, scale=order.trace_scale)
        simulation = lab.simulation
        simulation.engine.add(TraceSchedule(simulation.stage, lab.plane.backend.catalog, trace))
    async with lab:
        await lab.run(order.seconds)
        return meter.result(lab.log.digest)


def spec_of(variant: Variant) -> ClusterSpec:
    """The cluster of a variant; ConfigFileError if it cannot be used."""
    return cluster_of(variant.cluster, variant.source, Path())


def crew_of(variant: Variant) -> Crew:
    """The daemons of a variant; ValueError if there are none such."""
    gates = FeatureGates.parse(variant.gates)
    options = AutoscalerOptions(expander=variant.expander) if variant.expander else None
    crew = Crew(members(variant.crew), Profile(gates=gates))
    return crew if options is None else replace(crew, options=options)


class Reasons:
    """Says what pods wait for that nodes refuse, by the snapshot of the scheduler at work; pods of
    one likeness that were told the same wait for the same.
    """

    def __init__(self, aboard: Aboard) -> None:
        self._aboard = aboard
        self._known: dict[Hashable, str] = {}

    def __call__(self, key: Key, pod: PodFacts) -> str:
        """The cause in a word or two."""
        snapshot = self._snapshot()
        found = None if snapshot is None else snapshot.get(Pod, f"{key.namespace}/{key.name}")
        if snapshot is None or found is None:
            return Cause.SCHEDULER.value
        condition = pod.condition("PodScheduled")
        alike = (likeness(snapshot, found), condition and condition.message)
        if alike not in self._known:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            self._known[alike] = _told(snapshot, found)
        return self._known[alike]

    def _snapshot(self) -> Snapshot | None:
        scheduler = self._aboard.scheduler
        live = scheduler.live if scheduler is not None else None
        return live.snapshot if live is not None else None


def _told(snapshot: Snapshot, pod: Pod) -> str:
    waiting = why_it_waits(snapshot, pod)
    if waiting.cause is Cause.VOLUMES and waiting.drivers:
        return f"{waiting.cause.value} of {', '.join(waiting.drivers)}"
    return waiting.cause.value


def _ticking(lab: VirtualLab, seconds: float, progress: Progress) -> Callable[[Change], None]:
    """Tells how far the run is, some hundred times in all."""
    due = 0.0

    def tick(_: Change) -> None:
        nonlocal due
        now = lab.simulation.now()
        if now >= due:
            due = now + seconds / TICKS
            progress(min(1.0, now / seconds))

    return tick
