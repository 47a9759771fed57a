"""The tables of a report: key figures with their differences, scaling events, runs; and CSV.

| file | columns |
|---|---|
| series.csv | variant, seed, time, series, value: the mean over the step that ends at that second |
| summary.csv | variant, seed, figure, value: empty if the run was too short |
| events.csv | variant, seed, time, what, group, count, why, deprecatedWhat |

Renamed series and figures have rows for both names; `deprecatedWhat` is the old value of `what`.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from pathlib import Path

from bayplan.lab.measurement import Grid, RunMeasurements
from bayplan.lab.measurement.meter import FIGURES, FigureInfo
from bayplan.lab.measurement.old_names import (
    OLD_EVENT_FIELD,
    OLD_EVENTS,
    OLD_FIGURES,
    OLD_SERIES,
    with_old_names,
)
from bayplan.lab.report.data import RunReport, SimulationReport, VariantReport
from bayplan.lab.report.plots import UNKNOWN, duration, number, signed
from bayplan.lab.simulation.comparison import FigureDifference, FigureSpread
from bayplan.lab.simulation.runspec import RunSpec

MAX_ROWS = 100
"""Maximum number of scaling events that are shown for a variant."""


def figures_table(report: SimulationReport) -> str:
    """Return the table of figures: of each variant the spread and the difference from the first."""
    heads = "".join(_heads(report))
    rows = "".join(
        _row(name, figure, report) for name, figure in FIGURES.items() if _is_shown(name, report)
    )
    return (
        f'<div class="wide"><table><thead><tr><th scope="col" class="text">Figure</th>{heads}'
        f"</tr></thead><tbody>{rows}</tbody></table></div>"
    )


def _is_shown(name: str, report: SimulationReport) -> bool:
    """Return whether a figure is shown: it is always shown, or not zero everywhere."""
    spreads = [one.figures[name] for one in report.variants if name in one.figures]
    return bool(spreads) and (name in _ALWAYS_SHOWN or any(one.max != 0 for one in spreads))


_ALWAYS_SHOWN = frozenset({"cost", "nodesAdded", "podsNeverRan", "podsStuck"})


def _heads(report: SimulationReport) -> Iterator[str]:
    first = report.variants[0].name
    for index, one in enumerate(report.variants):
        yield f'<th scope="col">{escape(one.name)}</th>'
        if index:
            yield f'<th scope="col">difference<small>from {escape(first)}</small></th>'


def _row(name: str, figure: FigureInfo, report: SimulationReport) -> str:
    cells = []
    for index, one in enumerate(report.variants):
        cells.append(f"<td>{_spread(one.figures[name], figure.unit)}</td>")
        if index:
            cells.append(_difference(one.differences[name], figure))
    unit = " (hours)" if figure.unit == "h" else ""
    head = f"{escape(figure.title)}{unit}<small>{escape(figure.explanation)}</small>"
    return f'<tr><th scope="row">{head}</th>{"".join(cells)}</tr>'


def _spread(found: FigureSpread, unit: str) -> str:
    unknown = sum(one is None for one in found.values)
    if found.mean is None:
        return "not reached"
    text = number(found.mean, unit)
    if found.min != found.max:
        text += f"<small>{number(found.min, unit)} to {number(found.max, unit)}</small>"
    return text + (f"<small>not reached in {unknown} seeds</small>" if unknown else "")


def _difference(found: FigureDifference, figure: FigureInfo) -> str:
    if found.mean is None:
        return f"<td>{UNKNOWN}</td>"
    kind = _kind(found, figure)
    text = signed(found.mean, figure.unit)
    if found.min != found.max:
        text += (
            f"<small>{signed(found.min, figure.unit)} to {signed(found.max, figure.unit)}</small>"
        )
    return f"<td{kind}>{text}<small>{_agreement(found)}</small></td>"


def _agreement(found: FigureDifference) -> str:
    """Return in how many seeds the figure is less, the same and more."""
    seeds = found.less + found.same + found.more + found.unknown
    named = (("less", found.less), ("the same", found.same), ("more", found.more))
    parts = [f"{word} in {count}" for word, count in named if count]
    return f"{', '.join(parts)} of {seeds} seed{'s' if seeds != 1 else ''}"


def _kind(found: FigureDifference, figure: FigureInfo) -> str:
    """Return the CSS class: better or worse only if all seeds agree."""
    if figure.less_is_better is None or found.unknown or found.same or (found.less and found.more):
        return ""
    is_better = bool(found.less) == figure.less_is_better
    return ' class="better"' if is_better else ' class="worse"'


def events_tables(report: SimulationReport) -> str:
    """Return the scaling events of the first seed, by variant."""
    first = {one.variant: one for one in reversed(report.runs)}
    return "".join(_events(one, first[one.name]) for one in report.variants if one.name in first)


def _events(variant: VariantReport, run: RunReport) -> str:
    rows = "".join(
        f'<tr><td>{duration(one.time)}</td><td class="text">{escape(one.what)}</td>'
        f'<td class="text">{escape(one.group)}</td><td>{one.count}</td>'
        f'<td class="text">{escape(one.reason)}</td></tr>'
        for one in run.events[:MAX_ROWS]
    )
    left = len(run.events) - MAX_ROWS + run.events_omitted
    more = f"<p class=note>{left:,} more are not shown.</p>" if left > 0 else ""
    title = f"{escape(variant.name)}, seed {run.seed}: {len(run.events) + run.events_omitted}"
    return (
        f"<details><summary>{title} scaling events</summary>"
        '<div class="wide"><table><thead><tr><th scope="col">Time</th>'
        '<th scope="col" class="text">Event</th><th scope="col" class="text">Group</th>'
        '<th scope="col">Nodes</th><th scope="col" class="text">Reason</th></tr></thead>'
        f"<tbody>{rows}</tbody></table></div>{more}</details>"
    )


def runs_table(report: SimulationReport) -> str:
    """Return the table of runs with their digests."""
    rows = "".join(
        f'<tr><td class="text">{escape(one.variant)}</td><td>{one.seed}</td><td>{one.pods:,}</td>'
        f"<td>{one.never_ran:,}</td>"
        f'<td class="text"><code>{escape(one.digest[:16])}</code></td></tr>'
        for one in report.runs
    )
    return (
        '<details><summary>Runs</summary><div class="wide"><table><thead><tr>'
        '<th scope="col" class="text">Variant</th><th scope="col">Seed</th>'
        '<th scope="col">Pods</th><th scope="col">Never ran</th>'
        '<th scope="col" class="text">Digest of all changes</th></tr></thead>'
        f"<tbody>{rows}</tbody></table></div></details>"
    )


MeasuredRuns = Sequence[tuple[RunSpec, RunMeasurements]]
_FORMULA = frozenset("=+-@\t\r")


def write_csv(folder: Path, results: MeasuredRuns) -> None:
    """Write all CSV files into a folder, which is created if needed."""
    folder.mkdir(parents=True, exist_ok=True)
    head = ("variant", "seed")
    _write(folder / "series.csv", (*head, "time", "series", "value"), _series(results))
    _write(folder / "summary.csv", (*head, "figure", "value"), _figures(results))
    columns = (*head, "time", "what", "group", "count", "why", OLD_EVENT_FIELD)
    _write(folder / "events.csv", columns, _event_rows(results))


def _write(path: Path, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as out:
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(rows)


def _series(results: MeasuredRuns) -> Iterator[Sequence[object]]:
    for run, measured in results:
        step = Grid.over(run.seconds, run.points).step
        for name, values in with_old_names(measured.series, OLD_SERIES).items():
            for index, value in enumerate(values):
                time = round((index + 1) * step, 3)
                yield _text(run.variant.name), run.seed, time, _text(name), value


def _figures(results: MeasuredRuns) -> Iterator[Sequence[object]]:
    for run, measured in results:
        for name, value in with_old_names(measured.figures, OLD_FIGURES).items():
            cell = "" if value is None else value
            yield _text(run.variant.name), run.seed, name, cell


def _event_rows(results: MeasuredRuns) -> Iterator[Sequence[object]]:
    for run, measured in results:
        for event in measured.events:
            cells = (
                event.time,
                event.what,
                _text(event.group),
                event.count,
                _text(event.reason),
                OLD_EVENTS.get(event.what, event.what),
            )
            yield _text(run.variant.name), run.seed, *cells


def _text(text: str) -> str:
    """Return a text that no spreadsheet reads as a formula."""
    return f"'{text}" if text[:1] in _FORMULA else text
