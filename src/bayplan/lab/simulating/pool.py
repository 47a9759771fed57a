"""One run, a cluster in virtual time, measured; and runs in processes of their own, some at a time.

A process makes one run: its memory is given back whole, and one that dies takes no other with it.
It writes its result to a file and says only how far it is, so nothing large goes through pipes. If
whoever started it is gone, however that came, it ends at once: nobody would read its result.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
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
from bayplan.lab.simulating.orders import Order, Results, Variant
from bayplan.lab.traces.rows import rows
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


_SPAWN = multiprocessing.get_context("spawn")
Told = Callable[[int, float], None]
"""Told the number of a run, and the share of it that is over."""
_FAILED = 1
_PATIENCE = 5.0


@dataclass(frozen=True, slots=True)
class Failure:
    """A run that came to nothing."""

    order: Order
    why: str


@dataclass(slots=True)
class _Working:
    number: int
    order: Order
    process: BaseProcess
    news: Connection
    said: str = ""


def run_all(
    orders: Sequence[Order], folder: Path, version: str, jobs: int, told: Told
) -> list[Failure]:
    """Have all runs made whose results are not in the folder yet; returns those that failed."""
    results = Results(folder, version)
    waiting: deque[tuple[int, Order]] = deque()
    for number, order in enumerate(orders):
        if results.find(order) is None:
            waiting.append((number, order))
        else:
            told(number, 1.0)
    failures: list[Failure] = []
    with _ending() as working:
        while waiting or working:
            while waiting and len(working) < jobs:
                working.append(_start(*waiting.popleft(), folder, version))
            for one in _heard(working, told):
                working.remove(one)
                failures += _ended(one, results)
                told(one.number, 1.0)
    return failures


def _start(number: int, order: Order, folder: Path, version: str) -> _Working:
    here, there = _SPAWN.Pipe(duplex=False)
    arguments = (order, folder, version, there)
    process = _SPAWN.Process(target=_work, args=arguments, name=order.title, daemon=True)
    process.start()
    there.close()
    return _Working(number, order, process, here)


def _heard(working: list[_Working], told: Told) -> list[_Working]:
    """Wait for news of any; returns those that have ended."""
    by_news = {one.news: one for one in working}
    ended = []
    ready = set(wait(list(by_news)))
    for one in [by_news[news] for news in by_news if news in ready]:
        try:
            said = one.news.recv()
        except (EOFError, OSError):
            ended.append(one)
            continue
        if isinstance(said, str):
            one.said = said
        else:
            told(one.number, said)
    return ended


def _ended(one: _Working, results: Results) -> list[Failure]:
    one.process.join(_PATIENCE)
    code = one.process.exitcode
    one.news.close()
    if code == 0 and results.find(one.order) is not None:
        return []
    killed = f"killed by signal {-code}" if code is not None and code < 0 else f"exit code {code}"
    return [Failure(one.order, one.said or f"its process ended without a result ({killed})")]


@contextmanager
def _ending() -> Iterator[list[_Working]]:
    """Whatever happens, no process is left."""
    working: list[_Working] = []
    try:
        yield working
    finally:
        for one in working:
            one.process.terminate()
        for one in working:
            one.process.join(_PATIENCE)
            if one.process.is_alive():
                one.process.kill()


def _work(order: Order, folder: Path, version: str, news: Connection) -> None:
    """What a process does."""
    # Ctrl-C goes to all processes of a terminal; the one that started this one ends it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    logging.disable(logging.CRITICAL)  # what daemons say in one of many runs tells nobody anything
    _end_with_parent()
    try:
        measured = carry_out(order, news.send)
        Results(folder, version).keep(order, measured)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is told, and the others go on
        news.send(f"{type(error).__name__}: {error}"[:2000])
        raise SystemExit(_FAILED) from None


def _end_with_parent() -> None:
    """Watch whoever started this process. What a run raises may be caught on its way, so it is not
    asked.
    """
    parent = multiprocessing.parent_process()
    if parent is None:
        return
    watched = parent.sentinel

    def watch() -> None:
        wait([watched])
        os._exit(_FAILED)

    threading.Thread(target=watch, name="parent", daemon=True).start()
