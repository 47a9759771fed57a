"""A report as JSON has it: docs/simulate.md describes the shape, which is stable within a format.

Nothing in it depends on when or where it was made, so that the same inputs give the same report, to
the byte.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from bayplan.lab.measuring.series import WITHIN, Grid, Measured, ScaleEvent
from bayplan.lab.simulating.comparing import Band, Difference, Spread, band, difference, spread
from bayplan.lab.simulating.orders import Inputs, Order, Variant
from bayplan.lab.simulating.pool import Failure

FORMAT = 1
KIND = "bayplan.io/simulation-report"
CUMULATED = "cost/total"


class About(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """Where a report comes from."""

    version: str
    command: str


class VariantReport(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """A variant over all seeds."""

    name: str
    source: str
    gates: str
    expander: str
    daemons: str
    figures: dict[str, Spread]
    differences: dict[str, Difference]
    """From the first variant; empty for that one."""
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
    events: list[ScaleEvent]
    events_left_out: int


class FailureReport(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """A run that came to nothing; its seed counts in no variant."""

    variant: str
    seed: int
    why: str


class Report(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """All of it."""

    kind: str = KIND
    format: int = FORMAT
    about: About
    seconds: float
    step: float
    """A point of a series is the mean over so many seconds."""
    seeds: list[int]
    trace: str
    within: list[float]
    variants: list[VariantReport]
    runs: list[RunReport]
    failures: list[FailureReport]


def make_report(
    about: About,
    inputs: Inputs,
    results: Sequence[tuple[Order, Measured]],
    failures: Sequence[Failure],
) -> Report:
    """The report on runs; a seed that failed in one variant is left out of all."""
    failed = {one.order.seed for one in failures}
    seeds = [seed for seed in inputs.seeds if seed not in failed]
    found = {(order.variant.name, order.seed): measured for order, measured in results}
    by_variant = {
        one.name: [found[one.name, seed] for seed in seeds] for one in inputs.variants if seeds
    }
    names = _series_names(by_variant)
    grid = Grid.over(inputs.seconds, inputs.points)
    first = by_variant.get(inputs.variants[0].name, [])
    return Report(
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
        runs=[_run(order, measured) for order, measured in results if order.seed not in failed],
        failures=[
            FailureReport(variant=one.order.variant.name, seed=one.order.seed, why=one.why)
            for one in failures
        ],
    )


def _series_names(by_variant: Mapping[str, Sequence[Measured]]) -> list[str]:
    """All series of all runs: one that a run does not have was nothing all the time."""
    return sorted({name for runs in by_variant.values() for one in runs for name in one.series})


def _variant(
    variant: Variant,
    runs: Sequence[Measured],
    first: Sequence[Measured],
    names: Sequence[str],
    grid: Grid,
) -> VariantReport:
    figures = {name: [one.figures[name] for one in runs] for name in runs[0].figures}
    nothing = [0.0] * grid.points
    series = {name: band([one.series.get(name, nothing) for one in runs]) for name in names}
    if "cost/rate" in series:
        series[CUMULATED] = band(
            [_cumulated(one.series.get("cost/rate", nothing), grid) for one in runs]
        )
    return VariantReport(
        name=variant.name,
        source=variant.source,
        gates=variant.gates,
        expander=variant.expander,
        daemons=variant.crew,
        figures={name: spread(values) for name, values in figures.items()},
        differences={
            name: difference(values, [one.figures[name] for one in first])
            for name, values in figures.items()
            if first
        },
        series=dict(sorted(series.items())),
        within=band([one.waiting.within for one in runs]),
    )


def _cumulated(rates: Sequence[float], grid: Grid) -> list[float]:
    """What was spent by the end of each step, of rates by the hour."""
    spent, sums = 0.0, []
    for rate in rates:
        spent += rate * grid.step / 3600
        sums.append(spent)
    return sums


def _run(order: Order, measured: Measured) -> RunReport:
    return RunReport(
        variant=order.variant.name,
        seed=order.seed,
        digest=measured.digest,
        pods=measured.waiting.pods,
        never_ran=measured.waiting.never_ran,
        events=measured.events,
        events_left_out=measured.events_left_out,
    )


def as_json(report: Report) -> bytes:
    """The report as a file has it."""
    data = msgspec.json.encode(report, order="deterministic")
    return msgspec.json.format(data, indent=0) + b"\n"


def read_report(data: bytes) -> Report:
    """A report from its JSON; msgspec.DecodeError if it is none."""
    return msgspec.json.decode(data, type=Report)
