"""The data of a report, as in its JSON: docs/simulate.md describes the fields of each format.

Nothing in it depends on the time or the machine, so that the same inputs give the same report.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from bayplan.lab.measurement.old_names import (
    OLD_EVENT_FIELD,
    OLD_EVENTS,
    OLD_FIGURES,
    OLD_SERIES,
    use_new_names,
    with_old_names,
)
from bayplan.lab.measurement.series import WITHIN, Grid, RunMeasurements, ScalingEvent
from bayplan.lab.simulation.comparison import (
    Band,
    FigureDifference,
    FigureSpread,
    band,
    difference,
    spread,
)
from bayplan.lab.simulation.pool import RunFailure
from bayplan.lab.simulation.runspec import RunSpec, SimulationInputs, SimulationVariant

FORMAT = 2
KIND = "bayplan.io/simulation-report"
TOTAL_COST = "cost/total"


class ReportOrigin(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """The version and the command that made a report."""

    version: str
    command: str


class VariantReport(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """A variant over all seeds."""

    name: str
    source: str
    gates: str
    expander: str
    daemons: str
    figures: dict[str, FigureSpread]
    differences: dict[str, FigureDifference]
    """Differences from the first variant; empty for that one."""
    series: dict[str, Band]
    within: Band
    """The share of pods that ran within each of the report's `within` seconds."""


class RunReport(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """One run."""

    variant: str
    seed: int
    digest: str
    pods: int
    never_ran: int
    events: list[ScalingEvent]
    events_omitted: int = msgspec.field(name="eventsLeftOut")


class FailureReport(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """A failed run; its seed is excluded from all variants."""

    variant: str
    seed: int
    reason: str = msgspec.field(name="why")


class SimulationReport(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """The whole report."""

    kind: str = KIND
    format: int = FORMAT
    about: ReportOrigin
    seconds: float
    step: float
    """A point of a series is the mean over this many seconds."""
    seeds: list[int]
    trace: str
    within: list[float]
    variants: list[VariantReport]
    runs: list[RunReport]
    failures: list[FailureReport]


def make_report(
    about: ReportOrigin,
    inputs: SimulationInputs,
    results: Sequence[tuple[RunSpec, RunMeasurements]],
    failures: Sequence[RunFailure],
) -> SimulationReport:
    """Return the report of runs; a seed that failed in one variant is excluded from all."""
    failed = {failure.run.seed for failure in failures}
    seeds = [seed for seed in inputs.seeds if seed not in failed]
    found = {(run.variant.name, run.seed): measured for run, measured in results}
    by_variant = {
        one.name: [found[one.name, seed] for seed in seeds] for one in inputs.variants if seeds
    }
    names = _series_names(by_variant)
    grid = Grid.over(inputs.seconds, inputs.points)
    first = by_variant.get(inputs.variants[0].name, [])
    return SimulationReport(
        about=about,
        seconds=inputs.seconds,
        step=round(grid.step, 6),
        seeds=seeds,
        trace=inputs.trace_name,
        within=WITHIN,
        variants=[
            _variant(one, by_variant[one.name], first if number else [], names, grid)
            for number, one in enumerate(inputs.variants)
            if seeds
        ],
        runs=[_run(run, measured) for run, measured in results if run.seed not in failed],
        failures=[
            FailureReport(
                variant=failure.run.variant.name, seed=failure.run.seed, reason=failure.reason
            )
            for failure in failures
        ],
    )


def _series_names(by_variant: Mapping[str, Sequence[RunMeasurements]]) -> list[str]:
    """Return the names of all series; a series that a run does not have is zero."""
    return sorted({name for runs in by_variant.values() for one in runs for name in one.series})


def _variant(
    variant: SimulationVariant,
    runs: Sequence[RunMeasurements],
    first: Sequence[RunMeasurements],
    names: Sequence[str],
    grid: Grid,
) -> VariantReport:
    figures = {name: [one.figures[name] for one in runs] for name in runs[0].figures}
    zeros = [0.0] * grid.points
    series = {name: band([one.series.get(name, zeros) for one in runs]) for name in names}
    if "cost/rate" in series:
        series[TOTAL_COST] = band(
            [_running_total(one.series.get("cost/rate", zeros), grid) for one in runs]
        )
    return VariantReport(
        name=variant.name,
        source=variant.source,
        gates=variant.gates,
        expander=variant.expander,
        daemons=variant.daemons,
        figures={name: spread(values) for name, values in figures.items()},
        differences={
            name: difference(values, [one.figures[name] for one in first])
            for name, values in figures.items()
            if first
        },
        series=dict(sorted(series.items())),
        within=band([one.startup.within for one in runs]),
    )


def _running_total(rates: Sequence[float], grid: Grid) -> list[float]:
    """Return the cost until the end of each step, from rates by the hour."""
    total, totals = 0.0, []
    for rate in rates:
        total += rate * grid.step / 3600
        totals.append(total)
    return totals


def _run(run: RunSpec, measured: RunMeasurements) -> RunReport:
    return RunReport(
        variant=run.variant.name,
        seed=run.seed,
        digest=measured.digest,
        pods=measured.startup.pods,
        never_ran=measured.startup.never_ran,
        events=measured.events,
        events_omitted=measured.events_omitted,
    )


def as_json(report: SimulationReport) -> bytes:
    """Encode a report as JSON, with the deprecated names beside the new ones."""
    document: dict[str, Any] = msgspec.to_builtins(report, order="deterministic")
    for one in document["variants"]:
        for field in ("figures", "differences"):
            one[field] = dict(sorted(with_old_names(one[field], OLD_FIGURES).items()))
        one["series"] = dict(sorted(with_old_names(one["series"], OLD_SERIES).items()))
    for run in document["runs"]:
        for event in run["events"]:
            if event["what"] in OLD_EVENTS:
                event[OLD_EVENT_FIELD] = OLD_EVENTS[event["what"]]
    data = msgspec.json.encode(document)
    return msgspec.json.format(data, indent=0) + b"\n"


def read_report(data: bytes) -> SimulationReport:
    """Decode a report, also one with old names; raise msgspec.DecodeError if it is none."""
    document = msgspec.json.decode(data)
    use_new_names(document)
    return msgspec.convert(document, SimulationReport)
