"""The tables of a report: key figures with their differences, what was bought when, CSV.

| file | columns |
|---|---|
| series.csv | variant, seed, time, series, value: the mean over the step that ends at that second |
| summary.csv | variant, seed, figure, value: empty where the run was too short to say |
| events.csv | variant, seed, time, what, group, count, why |
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from pathlib import Path

from bayplan.lab.measuring import Grid, Measured
from bayplan.lab.measuring.meter import FIGURES, Figure
from bayplan.lab.reporting.plots import UNKNOWN, duration, number, signed
from bayplan.lab.reporting.report import Report, RunReport, VariantReport
from bayplan.lab.simulating.comparing import Difference, Spread
from bayplan.lab.simulating.orders import Order

MOST_ROWS = 100
"""Purchases and removals that are shown of a variant."""


def figures_table(report: Report) -> str:
    """A row a figure; of every variant its mean and spread, and its difference from the first."""
    heads = "".join(_heads(report))
    rows = "".join(
        _row(name, figure, report) for name, figure in FIGURES.items() if _is_told(name, report)
    )
    return (
        f'<div class="wide"><table><thead><tr><th scope="col" class="text">Figure</th>{heads}'
        f"</tr></thead><tbody>{rows}</tbody></table></div>"
    )


def _is_told(name: str, report: Report) -> bool:
    """What was nothing everywhere is left out, unless it is what people look for."""
    spreads = [one.figures[name] for one in report.variants if name in one.figures]
    return bool(spreads) and (name in _ALWAYS or any(one.max != 0 for one in spreads))


_ALWAYS = frozenset({"cost", "nodesBought", "podsNeverRan", "podsStuck"})


def _heads(report: Report) -> Iterator[str]:
    first = report.variants[0].name
    for index, one in enumerate(report.variants):
        yield f'<th scope="col">{escape(one.name)}</th>'
        if index:
            yield f'<th scope="col">difference<small>from {escape(first)}</small></th>'


def _row(name: str, figure: Figure, report: Report) -> str:
    cells = []
    for index, one in enumerate(report.variants):
        cells.append(f"<td>{_spread(one.figures[name], figure.unit)}</td>")
        if index:
            cells.append(_difference(one.differences[name], figure))
    unit = " (hours)" if figure.unit == "h" else ""
    head = f"{escape(figure.title)}{unit}<small>{escape(figure.explained)}</small>"
    return f'<tr><th scope="row">{head}</th>{"".join(cells)}</tr>'


def _spread(found: Spread, unit: str) -> str:
    unknown = sum(one is None for one in found.values)
    if found.mean is None:
        return "not reached"
    said = number(found.mean, unit)
    if found.min != found.max:
        said += f"<small>{number(found.min, unit)} to {number(found.max, unit)}</small>"
    return said + (f"<small>not reached in {unknown} seeds</small>" if unknown else "")


def _difference(found: Difference, figure: Figure) -> str:
    if found.mean is None:
        return f"<td>{UNKNOWN}</td>"
    kind = _kind(found, figure)
    said = signed(found.mean, figure.unit)
    if found.min != found.max:
        said += (
            f"<small>{signed(found.min, figure.unit)} to {signed(found.max, figure.unit)}</small>"
        )
    return f"<td{kind}>{said}<small>{_agreement(found)}</small></td>"


def _agreement(found: Difference) -> str:
    """In how many seeds it goes which way."""
    seeds = found.less + found.same + found.more + found.unknown
    named = (("less", found.less), ("the same", found.same), ("more", found.more))
    told = [f"{word} in {count}" for word, count in named if count]
    return f"{', '.join(told)} of {seeds} seed{'s' if seeds != 1 else ''}"


def _kind(found: Difference, figure: Figure) -> str:
    """Better or worse only if every seed says so."""
    if figure.less_is_better is None or found.unknown or found.same or (found.less and found.more):
        return ""
    is_better = bool(found.less) == figure.less_is_better
    return ' class="better"' if is_better else ' class="worse"'


def events_tables(report: Report) -> str:
    """What was bought and given back in the first seed, by variant."""
    first = {one.variant: one for one in reversed(report.runs)}
    return "".join(_events(one, first[one.name]) for one in report.variants if one.name in first)


def _events(variant: VariantReport, run: RunReport) -> str:
    rows = "".join(
        f'<tr><td>{duration(one.time)}</td><td class="text">{escape(one.what)}</td>'
        f'<td class="text">{escape(one.group)}</td><td>{one.count}</td>'
        f'<td class="text">{escape(one.why)}</td></tr>'
        for one in run.events[:MOST_ROWS]
    )
    left = len(run.events) - MOST_ROWS + run.events_left_out
    more = f"<p class=note>{left:,} more are not shown here.</p>" if left > 0 else ""
    said = f"{escape(variant.name)}, seed {run.seed}: {len(run.events) + run.events_left_out}"
    return (
        f"<details><summary>{said} purchases and removals</summary>"
        '<div class="wide"><table><thead><tr><th scope="col">Time</th>'
        '<th scope="col" class="text">What</th><th scope="col" class="text">Group</th>'
        '<th scope="col">Nodes</th><th scope="col" class="text">Why</th></tr></thead>'
        f"<tbody>{rows}</tbody></table></div>{more}</details>"
    )


def runs_table(report: Report) -> str:
    """Every run with its digest, and those that failed."""
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


Results = Sequence[tuple[Order, Measured]]
_FORMULA = frozenset("=+-@\t\r")


def write_csv(folder: Path, results: Results) -> None:
    """Write all files into a folder, which is made if need be."""
    folder.mkdir(parents=True, exist_ok=True)
    head = ("variant", "seed")
    _write(folder / "series.csv", (*head, "time", "series", "value"), _series(results))
    _write(folder / "summary.csv", (*head, "figure", "value"), _figures(results))
    columns = (*head, "time", "what", "group", "count", "why")
    _write(folder / "events.csv", columns, _event_rows(results))


def _write(path: Path, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as out:
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(rows)


def _series(results: Results) -> Iterator[Sequence[object]]:
    for order, measured in results:
        step = Grid.over(order.seconds, order.points).step
        for name, values in measured.series.items():
            for index, value in enumerate(values):
                time = round((index + 1) * step, 3)
                yield _text(order.variant.name), order.seed, time, _text(name), value


def _figures(results: Results) -> Iterator[Sequence[object]]:
    for order, measured in results:
        for name, value in measured.figures.items():
            said = "" if value is None else value
            yield _text(order.variant.name), order.seed, name, said


def _event_rows(results: Results) -> Iterator[Sequence[object]]:
    for order, measured in results:
        for one in measured.events:
            about = (one.time, one.what, _text(one.group), one.count, _text(one.why))
            yield _text(order.variant.name), order.seed, *about


def _text(said: str) -> str:
    """Text that no spreadsheet takes for a formula."""
    return f"'{said}" if said[:1] in _FORMULA else said
