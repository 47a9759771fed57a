"""A simulation as CSV, tidy: a value a row.

| file | columns |
|---|---|
| series.csv | variant, seed, time, series, value: the mean over the step that ends at that second |
| summary.csv | variant, seed, figure, value: empty where the run was too short to say |
| events.csv | variant, seed, time, what, group, count, why |
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from bayplan.lab.measuring import Grid, Measured
from bayplan.lab.simulating.orders import Order

Results = Sequence[tuple[Order, Measured]]
_FORMULA = frozenset("=+-@\t\r")


def write_csv(folder: Path, results: Results) -> None:
    """Write all files into a folder, which is made if need be."""
    folder.mkdir(parents=True, exist_ok=True)
    head = ("variant", "seed")
    _write(folder / "series.csv", (*head, "time", "series", "value"), _series(results))
    _write(folder / "summary.csv", (*head, "figure", "value"), _figures(results))
    columns = (*head, "time", "what", "group", "count", "why")
    _write(folder / "events.csv", columns, _events(results))


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


def _events(results: Results) -> Iterator[Sequence[object]]:
    for order, measured in results:
        for one in measured.events:
            about = (one.time, one.what, _text(one.group), one.count, _text(one.why))
            yield _text(order.variant.name), order.seed, *about


def _text(said: str) -> str:
    """Text that no spreadsheet takes for a formula."""
    return f"'{said}" if said[:1] in _FORMULA else said
