"""The tables of a report: key figures with their differences, what was bought when, all runs."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from bayplan.lab.measuring.figures import FIGURES, Figure
from bayplan.lab.reporting.report import Report, RunReport, VariantReport
from bayplan.lab.reporting.wording import UNKNOWN, duration, number, signed
from bayplan.lab.simulating.comparing import Difference, Spread

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
