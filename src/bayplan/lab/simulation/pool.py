"""One run, a cluster in virtual time, with measurements; and a pool of processes for many runs.

Each run has its own process: its memory is freed as a whole, and a crash affects no other run. The
process writes its result to a file and reports only its progress, so that nothing large goes
through pipes. If the parent process ends, for whatever reason, the process ends at once.
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
from bayplan.embedded.apiserver.store.entry import ObjectKey
from bayplan.embedded.apiserver.store.watchcache import WatchCacheEvent
from bayplan.embedded.control.facts import PodFacts
from bayplan.embedded.simulation.clusterfile import ClusterSpec, cluster_of
from bayplan.fit import Profile, Snapshot
from bayplan.fit.explanation.cause import equivalence_key, wait_reason
from bayplan.fit.plugins.plugin import Cause
from bayplan.kube.gates import FeatureGates
from bayplan.kube.pods import Pod
from bayplan.lab.daemons import LabDaemons, PreparedDaemons, parse_daemon_names, prepare_daemons
from bayplan.lab.lab import Daemon
from bayplan.lab.measurement import Grid, Meter, RunMeasurements
from bayplan.lab.simulation.runspec import RunResults, RunSpec, SimulationVariant
from bayplan.lab.traces.rows import parse_rows
from bayplan.lab.traces.schedule import TraceSchedule
from bayplan.lab.virtual import VirtualLab, run_virtually

Progress = Callable[[float], None]
"""Called with the share of the run that is complete."""
TICKS = 200
_MAX_CACHED = 10_000


def run_simulation(
    run: RunSpec, progress: Progress = lambda _: None, *, extra_daemons: Sequence[Daemon] = ()
) -> RunMeasurements:
    """Run a simulation, with additional daemons if given.

    Raise ConfigFileError if the API server refuses an object of the cluster file.
    """
    with rarely_collected():
        return run_virtually(_simulate(run, progress, extra_daemons))


async def _simulate(
    run: RunSpec, progress: Progress, extra_daemons: Sequence[Daemon]
) -> RunMeasurements:
    variant = run.variant
    spec = replace(spec_of(variant), seed=run.seed)
    prepared = prepare_daemons(daemons_of(variant), spec, lambda: lab.simulation.provider)
    daemons = (*prepared.daemons, *extra_daemons)
    lab = VirtualLab(prepared.spec, daemons, webhooks=prepared.webhooks)
    meter = Meter(lab.simulation, Grid.over(run.seconds, run.points), PendingCauses(prepared))
    lab.plane.store.listeners += [meter.observe, _progress_listener(lab, run.seconds, progress)]
    if run.trace:
        trace = parse_rows(run.trace, scale=run.trace_scale)
        simulation = lab.simulation
        simulation.engine.add(TraceSchedule(simulation.context, lab.plane.backend.catalog, trace))
    async with lab:
        await lab.run(run.seconds)
        return meter.result(lab.log.digest)


def spec_of(variant: SimulationVariant) -> ClusterSpec:
    """Return the cluster of a variant; raise ConfigFileError if it is not valid."""
    return cluster_of(variant.cluster, variant.source, Path())


def daemons_of(variant: SimulationVariant) -> LabDaemons:
    """Return the daemons of a variant; raise ValueError if they are not valid."""
    gates = FeatureGates.parse(variant.gates)
    options = AutoscalerOptions(expander=variant.expander) if variant.expander else None
    daemons = LabDaemons(parse_daemon_names(variant.daemons), Profile(gates=gates))
    return daemons if options is None else replace(daemons, options=options)


class PendingCauses:
    """Finds the cause for which a pod is unschedulable, from the snapshot of the scheduler.

    Pods of one equivalence class with the same message of the scheduler share the answer.
    """

    def __init__(self, prepared: PreparedDaemons) -> None:
        self._prepared = prepared
        self._cache: dict[Hashable, str] = {}

    def __call__(self, key: ObjectKey, pod: PodFacts) -> str:
        """Return the cause in a few words."""
        snapshot = self._snapshot()
        found = None if snapshot is None else snapshot.get(Pod, f"{key.namespace}/{key.name}")
        if snapshot is None or found is None:
            return Cause.SCHEDULER.value
        condition = pod.condition("PodScheduled")
        key_of_class = (equivalence_key(snapshot, found), condition and condition.message)
        if key_of_class not in self._cache:
            if len(self._cache) >= _MAX_CACHED:
                self._cache.clear()
            self._cache[key_of_class] = _cause(snapshot, found)
        return self._cache[key_of_class]

    def _snapshot(self) -> Snapshot | None:
        scheduler = self._prepared.scheduler
        live = scheduler.live if scheduler is not None else None
        return live.snapshot if live is not None else None


def _cause(snapshot: Snapshot, pod: Pod) -> str:
    waiting = wait_reason(snapshot, pod)
    if waiting.cause is Cause.VOLUMES and waiting.drivers:
        return f"{waiting.cause.value} of {', '.join(waiting.drivers)}"
    return waiting.cause.value


def _progress_listener(
    lab: VirtualLab, seconds: float, progress: Progress
) -> Callable[[WatchCacheEvent], None]:
    """Return a listener that reports the progress of the run, about TICKS times."""
    due = 0.0

    def observe(_: WatchCacheEvent) -> None:
        nonlocal due
        now = lab.simulation.now()
        if now >= due:
            due = now + seconds / TICKS
            progress(min(1.0, now / seconds))

    return observe


_SPAWN = multiprocessing.get_context("spawn")
RunProgress = Callable[[int, float], None]
"""Called with the number of a run and the share of it that is complete."""
_FAILED = 1
_JOIN_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class RunFailure:
    """A run that failed, and the reason."""

    run: RunSpec
    reason: str


@dataclass(slots=True)
class _Worker:
    number: int
    run: RunSpec
    process: BaseProcess
    messages: Connection
    error: str = ""


def run_all(
    runs: Sequence[RunSpec], folder: Path, version: str, jobs: int, progress: RunProgress
) -> list[RunFailure]:
    """Run all simulations whose results are not in the folder yet; return those that failed."""
    results = RunResults(folder, version)
    queued: deque[tuple[int, RunSpec]] = deque()
    for number, run in enumerate(runs):
        if results.find(run) is None:
            queued.append((number, run))
        else:
            progress(number, 1.0)
    failures: list[RunFailure] = []
    with _worker_pool() as workers:
        while queued or workers:
            while queued and len(workers) < jobs:
                workers.append(_start(*queued.popleft(), folder, version))
            for worker in _finished_workers(workers, progress):
                workers.remove(worker)
                failures += _failure(worker, results)
                progress(worker.number, 1.0)
    return failures


def _start(number: int, run: RunSpec, folder: Path, version: str) -> _Worker:
    here, there = _SPAWN.Pipe(duplex=False)
    arguments = (run, folder, version, there)
    process = _SPAWN.Process(target=_work, args=arguments, name=run.title, daemon=True)
    process.start()
    there.close()
    return _Worker(number, run, process, here)


def _finished_workers(workers: list[_Worker], progress: RunProgress) -> list[_Worker]:
    """Wait for messages of any worker; return the workers that have ended."""
    by_connection = {worker.messages: worker for worker in workers}
    ended = []
    ready = set(wait(list(by_connection)))
    for worker in [by_connection[found] for found in by_connection if found in ready]:
        try:
            message = worker.messages.recv()
        except (EOFError, OSError):
            ended.append(worker)
            continue
        if isinstance(message, str):
            worker.error = message
        else:
            progress(worker.number, message)
    return ended


def _failure(worker: _Worker, results: RunResults) -> list[RunFailure]:
    worker.process.join(_JOIN_SECONDS)
    code = worker.process.exitcode
    worker.messages.close()
    if code == 0 and results.find(worker.run) is not None:
        return []
    killed = f"killed by signal {-code}" if code is not None and code < 0 else f"exit code {code}"
    return [
        RunFailure(worker.run, worker.error or f"its process ended without a result ({killed})")
    ]


@contextmanager
def _worker_pool() -> Iterator[list[_Worker]]:
    """Yield a list of workers and end all their processes afterwards."""
    workers: list[_Worker] = []
    try:
        yield workers
    finally:
        for worker in workers:
            worker.process.terminate()
        for worker in workers:
            worker.process.join(_JOIN_SECONDS)
            if worker.process.is_alive():
                worker.process.kill()


def _work(run: RunSpec, folder: Path, version: str, messages: Connection) -> None:
    """Run one simulation in a worker process."""
    # Ctrl-C goes to all processes of a terminal; the parent process ends this one.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    logging.disable(logging.CRITICAL)  # logs of one of many runs are of no use
    _end_with_parent()
    try:
        measurements = run_simulation(run, messages.send)
        RunResults(folder, version).store(run, measurements)
    except Exception as error:  # noqa: BLE001 - it is reported, and the other runs continue
        messages.send(f"{type(error).__name__}: {error}"[:2000])
        raise SystemExit(_FAILED) from None


def _end_with_parent() -> None:
    """End this process when its parent ends.

    A thread does it, since an exception in the run might be caught.
    """
    parent = multiprocessing.parent_process()
    if parent is None:
        return
    sentinel = parent.sentinel

    def watch() -> None:
        wait([sentinel])
        os._exit(_FAILED)

    threading.Thread(target=watch, name="parent", daemon=True).start()
