"""The report as one HTML file: it opens from disk, asks nobody for anything, and needs no script.

Everything that comes from a cluster file or a cluster is escaped, and the page's policy forbids
scripts and requests altogether.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from html import escape
from importlib.resources import files

import yaml

from bayplan.lab.reporting.plots import COLOURS, Line, duration, listed, log_axis, plot, time_axis
from bayplan.lab.reporting.report import Report
from bayplan.lab.reporting.tables import events_tables, figures_table, runs_table
from bayplan.lab.simulating.orders import Inputs, Variant

MOST_PANELS = 12
"""Plots of one family, such as queues; the others are in the CSV."""


@dataclass(frozen=True, slots=True)
class Section:
    """Some plots under a heading."""

    title: str
    explained: str
    plots: list[str] = field(default_factory=list)
    left_out: int = 0


def sections(report: Report) -> list[Section]:
    """All sections that have plots."""
    drawing = _Drawing(report)
    found = [
        drawing.section(
            "Nodes and cost",
            "Each point is the mean over its step of the run.",
            {
                "nodes/ready": "Nodes ready",
                "nodes/booting": "Nodes booting",
                "nodes/unwell": "Nodes that were ready and are not",
                "cost/rate": "Cost an hour",
                "cost/total": "Cost so far",
                "cost/idle": "Cost an hour of idle nodes",
            },
        ),
        drawing.family("Groups", "Instances, those that boot included.", "groups", "Group {}"),
        drawing.section(
            "Pods",
            "A pod waits until it has a node, starts until it runs, and is stuck if a node that it"
            " was sent to cannot have one of its volumes.",
            {
                "pods/waiting": "Pods waiting",
                "pods/starting": "Pods starting",
                "pods/stuck": "Pods stuck",
                "pods/running": "Pods running",
            },
        ),
        drawing.family(
            "Pods waiting, by cause",
            "What would have to change for them to go on.",
            "waiting",
            "Waiting for {}",
        ),
        drawing.family(
            "Pods stuck, by cause",
            "Attached to the node that they have, or made for the one that they were sent back"
            " from.",
            "stuck",
            "Stuck for {}",
        ),
        drawing.times(),
        drawing.volumes(),
        drawing.family(
            "Queues",
            "What each has of what it deserves, of the resource of which it has most.",
            "share",
            "Share of {}",
        ),
        drawing.section(
            "Purchases and removals",
            "Counted from the start.",
            {
                "scaling/bought": "Instances bought",
                "scaling/removed": "Instances given back",
                "scaling/failed": "Instances that could not be had",
            },
        ),
    ]
    return [one for one in found if one.plots]


class _Drawing:
    def __init__(self, report: Report) -> None:
        self._report = report
        points = max(1, round(report.seconds / report.step))
        self._axis = time_axis(report.seconds, points)

    def section(self, title: str, explained: str, titles: dict[str, str]) -> Section:
        """Named series, those that were not nothing all the time."""
        shown = [self._plot(said, name) for name, said in titles.items() if self._has(name)]
        return Section(title, explained, shown)

    def family(self, title: str, explained: str, family: str, said: str) -> Section:
        """All series of a family, those with most first."""
        labels = sorted(self._labels(family), key=lambda label: (-self._most(label, family), label))
        shown = [
            self._plot(said.format(label), f"{family}/{label}") for label in labels[:MOST_PANELS]
        ]
        return Section(title, explained, shown, max(0, len(labels) - MOST_PANELS))

    def times(self) -> Section:
        """How long pods took."""
        axis = log_axis(self._report.within)
        lines = [
            Line(number, one.name, one.within) for number, one in enumerate(self._report.variants)
        ]
        explained = (
            "The share of pods that ran within a time; pods that had not run by then count as"
            " such, for as long as they were watched."
        )
        title = "From created to running"
        return Section(title, explained, [plot("Share of pods running", axis, lines, most=1.0)])

    def volumes(self) -> Section:
        """Volumes of each driver, below their limits."""
        shown = []
        labels = sorted({*self._labels("volumes"), *self._labels("limits")})
        for label in labels[:MOST_PANELS]:
            lines = [*self._lines(f"limits/{label}", limit=True), *self._lines(f"volumes/{label}")]
            shown.append(plot(f"Volumes of {label}, and what nodes can attach", self._axis, lines))
            if self._has(f"full/{label}"):
                shown.append(self._plot(f"Nodes without a place left for {label}", f"full/{label}"))
        left_out = max(0, len(labels) - MOST_PANELS)
        explained = "Attached volumes; the thin lines are the limits of all nodes together."
        return Section("Volumes", explained, shown, left_out)

    def _plot(self, title: str, name: str) -> str:
        return plot(title, self._axis, self._lines(name))

    def _lines(self, name: str, *, limit: bool = False) -> list[Line]:
        said = " limit" if limit else ""
        return [
            Line(number, one.name + said, one.series[name], limit)
            for number, one in enumerate(self._report.variants)
            if name in one.series
        ]

    def _has(self, name: str) -> bool:
        return any(max(line.band.max) > 0 for line in self._lines(name))

    def _labels(self, family: str) -> Iterator[str]:
        for name in self._report.variants[0].series if self._report.variants else ():
            found, _, label = name.partition("/")
            if found == family and self._has(name):
                yield label

    def _most(self, label: str, family: str) -> float:
        return max(sum(line.band.median) for line in self._lines(f"{family}/{label}"))


POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
MOST_SHOWN = 100_000
"""Letters of a cluster file that are shown."""


def as_page(report: Report, inputs: Inputs) -> str:
    """The whole page."""
    body = "\n".join(_body(report, inputs))
    title = escape(_title(report))
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{escape(POLICY)}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n'
        f"<title>{title}</title>\n<style>\n{_style()}</style></head>\n<body>\n{body}\n</body></html>\n"
    )


@cache
def _style() -> str:
    return files("bayplan.lab.reporting").joinpath("page.css").read_text()


def _title(report: Report) -> str:
    names = [one.name for one in report.variants]
    return " against ".join(names[:2]) + (f" and {len(names) - 2} more" if names[2:] else "")


def _body(report: Report, inputs: Inputs) -> Iterator[str]:
    yield f"<h1>{escape(_title(report) or 'No run came to an end')}</h1>"
    yield f"<p>{escape(_summary(report))}</p>"
    yield f"<pre>{escape(report.about.command)}</pre>"
    yield from _failures(report)
    if report.variants:
        yield from _findings(report)
    yield from _inputs(inputs)
    yield (
        f"<footer><p>Made by bayplan {escape(report.about.version)}. The same inputs give the same"
        " report, to the byte.</p></footer>"
    )


def _summary(report: Report) -> str:
    seeds = f"{len(report.seeds)} seed{'s' if len(report.seeds) != 1 else ''}"
    said = f"A simulated {duration(report.seconds)}, {seeds} for each variant."
    return said + (f" Work from the trace {report.trace}." if report.trace else "")


def _failures(report: Report) -> Iterator[str]:
    if report.failures:
        seeds = listed(sorted({str(one.seed) for one in report.failures}))
        yield f'<h2 class="worse">Runs that failed</h2><p>Without seeds {escape(seeds)}:</p><ul>'
        for one in report.failures:
            yield f"<li>{escape(one.variant)}, seed {one.seed}: {escape(one.why)}</li>"
        yield "</ul>"


def _findings(report: Report) -> Iterator[str]:
    found = sections(report)
    yield _contents(found)
    yield _legend(report)
    yield '<h2 id="figures">Key figures</h2>'
    yield (
        '<p class="note">Means over seeds, with the least and the most. Differences are taken seed'
        " by seed; they are coloured where all seeds agree.</p>"
    )
    yield figures_table(report)
    for number, one in enumerate(found):
        yield f'<h2 id="s{number}">{escape(one.title)}</h2>'
        yield f'<p class="note">{escape(one.explained)}</p>'
        if one.left_out:
            yield f'<p class="note">{one.left_out} more are not drawn; they are in the CSV.</p>'
        yield f'<div class="plots">{"".join(one.plots)}</div>'
    yield events_tables(report)
    yield runs_table(report)


def _contents(found: Sequence[Section]) -> str:
    links = "".join(
        f'<li><a href="#s{number}">{escape(one.title)}</a></li>' for number, one in enumerate(found)
    )
    return f'<nav><ul><li><a href="#figures">Key figures</a></li>{links}</ul></nav>'


def _legend(report: Report) -> str:
    items = "".join(
        f'<li><svg viewBox="0 0 36 12" aria-hidden="true"><path class="v{number % COLOURS} line"'
        f' d="M0 6H36"/></svg>{escape(one.name)}</li>'
        for number, one in enumerate(report.variants)
    )
    return f'<ul class="legend">{items}</ul>'


def _inputs(inputs: Inputs) -> Iterator[str]:
    yield f"<h2>Inputs</h2><p>Seeds: {', '.join(str(one) for one in inputs.seeds)}.</p>"
    for one in inputs.variants:
        yield f"<details><summary>{escape(_told(one))}</summary>{_cluster(one)}</details>"


def _told(variant: Variant) -> str:
    parts = [f"{variant.name}: {variant.source}", f"daemons {variant.crew}"]
    parts += [f"gates {variant.gates}"] if variant.gates else []
    parts += [f"expander {variant.expander}"] if variant.expander else []
    return ", ".join(parts)


def _cluster(variant: Variant) -> str:
    text: str = yaml.dump(variant.cluster, Dumper=yaml.CSafeDumper, sort_keys=False, width=100)
    cut = f"\n… {len(text) - MOST_SHOWN:,} letters more" if len(text) > MOST_SHOWN else ""
    return f"<pre>{escape(text[:MOST_SHOWN] + cut)}</pre>"
