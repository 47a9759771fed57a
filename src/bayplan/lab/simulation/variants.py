"""The variants and runs of a simulation, from the options of the command line."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import msgspec

from bayplan.autoscaler.expanders import ExpanderError, parse_expanders
from bayplan.autoscaler.expanders.chain import GRPC
from bayplan.base.configfiles import ConfigFileError, read_text
from bayplan.base.durations import DurationError, parse_duration
from bayplan.base.errors import InputError
from bayplan.embedded.simulation.clusterfile import ClusterSpec, plain_cluster
from bayplan.kube.gates import GateError
from bayplan.lab.daemons import UnknownDaemonError
from bayplan.lab.simulation.pool import daemons_of, spec_of
from bayplan.lab.simulation.runspec import (
    OverrideError,
    SimulationInputs,
    SimulationVariant,
    apply_overrides,
)
from bayplan.lab.traces.recorded_trace import trace_from_recording
from bayplan.lab.traces.rows import TraceError, read_trace, validate_trace

MAX_RUNS = 10_000
MAX_SEEDS = 1_000
MAX_DAYS = 400


@dataclass(frozen=True, slots=True)
class SimulationRequest:
    """The options of a simulation."""

    file: Path
    for_: str
    set_: tuple[str, ...] = ()
    compare: tuple[Path, ...] = ()
    compare_set: tuple[str, ...] = ()
    gate: tuple[str, ...] = ()
    expander: tuple[str, ...] = ()
    feature_gates: str = ""
    with_: str = "scheduler,autoscaler,queues"
    seed: int | None = None
    seeds: int = 1
    points: int = 240
    trace: Path | None = None
    scale_time: float = 1.0

    def command(self, report: Path | None) -> str:
        """Return the command line with these options."""
        words = ["bayplan", "simulate", str(self.file), "--for", self.for_]
        many: tuple[tuple[str, tuple[object, ...]], ...] = (
            ("--set", self.set_),
            ("--trace", (self.trace,) if self.trace else ()),
            ("--compare", self.compare),
            ("--compare-set", self.compare_set),
            ("--gate", self.gate),
            ("--expander", self.expander),
        )
        words += [word for name, values in many for value in values for word in (name, str(value))]
        defaults = SimulationRequest(self.file, self.for_)
        for name, given, default in (
            ("--feature-gates", self.feature_gates, defaults.feature_gates),
            ("--with", self.with_, defaults.with_),
            ("--seed", self.seed, defaults.seed),
            ("--seeds", self.seeds, defaults.seeds),
            ("--scale-time", self.scale_time, defaults.scale_time),
            ("--points", self.points, defaults.points),
            ("--report", report, None),
        ):
            words += [name, str(given)] if given != default else []
        return shlex.join(words)


def build_inputs(
    request: SimulationRequest, warn: Callable[[str], None] = lambda _: None
) -> SimulationInputs:
    """Build the inputs of all runs; `warn` is called if the end of a trace cannot be read."""
    base = _base(request, request.file, "base")
    variants = [base, *_others(request, base)]
    seeds = _seeds(request, base)
    if len(variants) * len(seeds) > MAX_RUNS:
        raise InputError(f"{len(variants)} variants with {len(seeds)} seeds are too many runs")
    for variant in variants:
        _check(variant)
    return SimulationInputs(
        variants=_with_unique_names(variants),
        seeds=seeds,
        seconds=_seconds(request.for_),
        points=request.points,
        trace=_trace(request, warn),
        trace_scale=request.scale_time,
        trace_name=request.trace.name if request.trace else "",
    )


def _trace(request: SimulationRequest, warn: Callable[[str], None]) -> str:
    if not 0.001 <= request.scale_time <= 1000:
        raise InputError(f"--scale-time {request.scale_time:g}: from 0.001 to 1000")
    if request.trace is None:
        return ""
    try:
        is_recording = request.trace.suffix == ".bpr"
        return (
            validate_trace(trace_from_recording(request.trace, warn))
            if is_recording
            else read_trace(request.trace)
        )
    except TraceError as problem:
        raise InputError(str(problem)) from None


def _base(request: SimulationRequest, file: Path, name: str) -> SimulationVariant:
    try:
        cluster = plain_cluster(read_text(file), str(file), file.parent)
        changed = apply_overrides(cluster, request.set_)
    except ConfigFileError as problem:
        raise InputError(str(problem)) from None
    except OverrideError as problem:
        raise InputError(f"--set {problem}") from None
    source = " ".join([str(file), *(f"--set {one}" for one in request.set_)])
    gates, daemons = request.feature_gates, request.with_
    return SimulationVariant(
        name=name, cluster=changed, source=source, gates=gates, daemons=daemons
    )


def _others(request: SimulationRequest, base: SimulationVariant) -> list[SimulationVariant]:
    replace = msgspec.structs.replace
    found = [_base(request, file, file.stem) for file in request.compare]
    for setting in request.compare_set:
        try:
            cluster = apply_overrides(base.cluster, (setting,))
        except OverrideError as problem:
            raise InputError(f"--compare-set {problem}") from None
        source = f"{base.source} --compare-set {setting}"
        found.append(replace(base, name=setting, cluster=cluster, source=source))
    for gates in request.gate:
        all_gates = ",".join(filter(None, (base.gates, gates)))
        found.append(replace(base, name=gates, gates=all_gates))
    found += [replace(base, name=f"expander {one}", expander=one) for one in request.expander]
    return found


def _with_unique_names(variants: list[SimulationVariant]) -> list[SimulationVariant]:
    """Return the variants with unique names."""
    renamed: list[SimulationVariant] = []
    for variant in variants:
        names = {other.name for other in renamed}
        name, number = variant.name, 2
        while name in names:
            name, number = f"{variant.name} ({number})", number + 1
        renamed.append(msgspec.structs.replace(variant, name=name))
    return renamed


def _seeds(request: SimulationRequest, base: SimulationVariant) -> list[int]:
    if not 1 <= request.seeds <= MAX_SEEDS:
        raise InputError(f"--seeds {request.seeds}: from 1 to {MAX_SEEDS}")
    first = _spec(base).seed if request.seed is None else request.seed
    if first < 0:
        raise InputError(f"--seed {first}: must not be negative")
    return [first + number for number in range(request.seeds)]


def _seconds(text: str) -> float:
    try:
        seconds = parse_duration(text)
    except DurationError as problem:
        raise InputError(f"--for: {problem}") from None
    if not 1 <= seconds <= MAX_DAYS * 86400:
        raise InputError(f"--for {text}: from 1s to {MAX_DAYS} days")
    return seconds


def _spec(variant: SimulationVariant) -> ClusterSpec:
    """Return the cluster of a variant; raise InputError if it is not valid."""
    try:
        return spec_of(variant)
    except ConfigFileError as problem:
        raise InputError(str(problem)) from None


def _check_expanders(text: str) -> None:
    if GRPC in parse_expanders(text):
        raise ExpanderError("grpc calls another process, which does not run in virtual time")


def _check(variant: SimulationVariant) -> None:
    """Check what would otherwise fail only during a run."""
    _spec(variant)
    try:
        _check_expanders(variant.expander or "least-waste")
        daemons_of(variant)
    except ExpanderError as problem:
        raise InputError(f"--expander {variant.expander}: {problem}") from None
    except GateError as problem:
        raise InputError(str(problem)) from None
    except UnknownDaemonError as problem:
        raise InputError(f"--with: {problem}") from None
