"""The runs that a simulation is asked for; InputError names the option."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import msgspec

from bayplan.autoscaler.expanders import ExpanderError, parse_expanders
from bayplan.base.configfiles import ConfigFileError, read_text
from bayplan.base.durations import DurationError, parse_duration
from bayplan.base.errors import InputError
from bayplan.embedded.simulation.clusterfile import ClusterSpec, plain_cluster
from bayplan.kube.gates import GateError
from bayplan.lab.crew import CrewError
from bayplan.lab.simulating.orders import Inputs, OverrideError, Variant, overridden
from bayplan.lab.simulating.pool import crew_of, spec_of
from bayplan.lab.traces.recorded import trace_of
from bayplan.lab.traces.rows import TraceError, checked, read_trace

MOST_RUNS = 10_000
MOST_SEEDS = 1_000
LONGEST_DAYS = 400


@dataclass(frozen=True, slots=True)
class SimulationRequest:
    """What the command line asked for."""

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
        """The command line that asks for the same."""
        words = ["bayplan", "simulate", str(self.file), "--for", self.for_]
        many: tuple[tuple[str, tuple[object, ...]], ...] = (
            ("--set", self.set_),
            ("--trace", (self.trace,) if self.trace else ()),
            ("--compare", self.compare),
            ("--compare-set", self.compare_set),
            ("--gate", self.gate),
            ("--expander", self.expander),
        )
        words += [word for name, said in many for one in said for word in (name, str(one))]
        usual = SimulationRequest(self.file, self.for_)
        for name, said, default in (
            ("--feature-gates", self.feature_gates, usual.feature_gates),
            ("--with", self.with_, usual.with_),
            ("--seed", self.seed, usual.seed),
            ("--seeds", self.seeds, usual.seeds),
            ("--scale-time", self.scale_time, usual.scale_time),
            ("--points", self.points, usual.points),
            ("--report", report, None),
        ):
            words += [name, str(said)] if said != default else []
        return shlex.join(words)


def inputs_of(asked: SimulationRequest, tell: Callable[[str], None] = lambda _: None) -> Inputs:
    """All runs: the base and each variant, with every seed; told is what a trace leaves out."""
    base = _base(asked, asked.file, "base")
    variants = [base, *_others(asked, base)]
    seeds = _seeds(asked, base)
    if len(variants) * len(seeds) > MOST_RUNS:
        raise InputError(f"{len(variants)} variants with {len(seeds)} seeds are too many runs")
    for one in variants:
        _check(one)
    return Inputs(
        variants=_told_apart(variants),
        seeds=seeds,
        seconds=_seconds(asked.for_),
        points=asked.points,
        trace=_trace(asked, tell),
        trace_scale=asked.scale_time,
        trace_name=asked.trace.name if asked.trace else "",
    )


def _trace(asked: SimulationRequest, tell: Callable[[str], None]) -> str:
    if not 0.001 <= asked.scale_time <= 1000:
        raise InputError(f"--scale-time {asked.scale_time:g}: from 0.001 to 1000")
    if asked.trace is None:
        return ""
    try:
        is_recording = asked.trace.suffix == ".bpr"
        return checked(trace_of(asked.trace, tell)) if is_recording else read_trace(asked.trace)
    except TraceError as problem:
        raise InputError(str(problem)) from None


def _base(asked: SimulationRequest, file: Path, name: str) -> Variant:
    try:
        cluster = plain_cluster(read_text(file), str(file), file.parent)
        made = overridden(cluster, asked.set_)
    except ConfigFileError as problem:
        raise InputError(str(problem)) from None
    except OverrideError as problem:
        raise InputError(f"--set {problem}") from None
    source = " ".join([str(file), *(f"--set {one}" for one in asked.set_)])
    gates, crew = asked.feature_gates, asked.with_
    return Variant(name=name, cluster=made, source=source, gates=gates, crew=crew)


def _others(asked: SimulationRequest, base: Variant) -> list[Variant]:
    replace = msgspec.structs.replace
    found = [_base(asked, file, file.stem) for file in asked.compare]
    for setting in asked.compare_set:
        try:
            cluster = overridden(base.cluster, (setting,))
        except OverrideError as problem:
            raise InputError(f"--compare-set {problem}") from None
        source = f"{base.source} --compare-set {setting}"
        found.append(replace(base, name=setting, cluster=cluster, source=source))
    for gates in asked.gate:
        said = ",".join(filter(None, (base.gates, gates)))
        found.append(replace(base, name=gates, gates=said))
    found += [replace(base, name=f"expander {one}", expander=one) for one in asked.expander]
    return found


def _told_apart(variants: list[Variant]) -> list[Variant]:
    """Variants whose names differ, as columns of a table must."""
    made: list[Variant] = []
    for one in variants:
        names = {other.name for other in made}
        name, number = one.name, 2
        while name in names:
            name, number = f"{one.name} ({number})", number + 1
        made.append(msgspec.structs.replace(one, name=name))
    return made


def _seeds(asked: SimulationRequest, base: Variant) -> list[int]:
    if not 1 <= asked.seeds <= MOST_SEEDS:
        raise InputError(f"--seeds {asked.seeds}: from 1 to {MOST_SEEDS}")
    first = _spec(base).seed if asked.seed is None else asked.seed
    if first < 0:
        raise InputError(f"--seed {first}: is less than nothing")
    return [first + number for number in range(asked.seeds)]


def _seconds(text: str) -> float:
    try:
        seconds = parse_duration(text)
    except DurationError as problem:
        raise InputError(f"--for: {problem}") from None
    if not 1 <= seconds <= LONGEST_DAYS * 86400:
        raise InputError(f"--for {text}: from 1s to {LONGEST_DAYS} days")
    return seconds


def _spec(variant: Variant) -> ClusterSpec:
    """The cluster of a variant."""
    try:
        return spec_of(variant)
    except ConfigFileError as problem:
        raise InputError(str(problem)) from None


def _check(variant: Variant) -> None:
    """What would come out only in the middle of a run."""
    _spec(variant)
    try:
        parse_expanders(variant.expander or "least-waste")
        crew_of(variant)
    except ExpanderError as problem:
        raise InputError(f"--expander {variant.expander}: {problem}") from None
    except GateError as problem:
        raise InputError(str(problem)) from None
    except CrewError as problem:
        raise InputError(f"--with: {problem}") from None
