"""The report as one HTML file, which opens from disk and needs no network and no scripts.

Everything that comes from a cluster file or a cluster is escaped, and the page's content security
policy forbids scripts and requests.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from html import escape
from importlib.resources import files

import yaml

from bayplan.lab.report.data import SimulationReport
from bayplan.lab.report.plots import COLOURS, Line, duration, listed, log_axis, plot, time_axis
from bayplan.lab.report.tables import events_tables, figures_table, runs_table
from bayplan.lab.simulation.runspec import SimulationInputs, SimulationVariant

MAX_PLOTS = 12
"""Maximum number of plots of one family, such as queues; the others are in the CSV."""


@dataclass(frozen=True, slots=True)
class ReportSection:
    """Plots under a heading."""

    title: str
    explanation: str
    plots: list[str] = field(default_factory=list)
    omitted: int = 0


def sections(report: SimulationReport) -> list[ReportSection]:
    """Return all sections that have plots."""
    plots = _Plots(report)
    found = [
        plots.section(
            "Nodes and cost",
            "Each point is the mean over its step of the run.",
            {
                "nodes/ready": "Nodes ready",
                "nodes/booting": "Nodes booting",
                "nodes/unwell": "Nodes no longer ready",
                "cost/rate": "Cost an hour",
                "cost/total": "Cost so far",
                "cost/idle": "Cost an hour of idle nodes",
            },
        ),
        plots.family("Groups", "Instances, including those that boot.", "groups", "Group {}"),
        plots.section(
            "Pods",
            "A pod waits until it is bound to a node, starts until it runs, and is stuck if its"
            " node cannot use one of its volumes.",
            {
                "pods/waiting": "Pods waiting",
                "pods/starting": "Pods starting",
                "pods/stuck": "Pods stuck",
                "pods/running": "Pods running",
            },
        ),
        plots.family(
            "Pods waiting, by cause",
            "What the pods wait for.",
            "waiting",
            "Waiting for {}",
        ),
        plots.family(
            "Pods stuck, by cause",
            "Volumes that cannot be attached to the node of the pod, or provisioned for the"
            " selected node.",
            "stuck",
            "Stuck for {}",
        ),
        plots.times(),
        plots.volumes(),
        plots.family(
            "Queues",
            "The largest ratio, over resources, of allocated to deserved.",
            "share",
            "Share of {}",
        ),
        plots.section(
            "Scaling",
            "Instances, counted from the start.",
            {
                "scaling/added": "Instances added",
                "scaling/removed": "Instances removed",
                "scaling/failed": "Instances that could not be created",
            },
        ),
    ]
    return [section for section in found if section.plots]


class _Plots:
    def __init__(self, report: SimulationReport) -> None:
        self._report = report
        points = max(1, round(report.seconds / report.step))
        self._axis = time_axis(report.seconds, points)

    def section(self, title: str, explanation: str, titles: dict[str, str]) -> ReportSection:
        """Return a section with the series of these names that are not always zero."""
        shown = [self._plot(text, name) for name, text in titles.items() if self._has(name)]
        return ReportSection(title, explanation, shown)

    def family(self, title: str, explanation: str, family: str, plot_title: str) -> ReportSection:
        """Return a section with all series of a family, the largest first."""
        labels = sorted(
            self._labels(family), key=lambda label: (-self._total(label, family), label)
        )
        shown = [
            self._plot(plot_title.format(label), f"{family}/{label}")
            for label in labels[:MAX_PLOTS]
        ]
        return ReportSection(title, explanation, shown, max(0, len(labels) - MAX_PLOTS))

    def times(self) -> ReportSection:
        """Return the section of startup times."""
        axis = log_axis(self._report.within)
        lines = [
            Line(number, one.name, one.within) for number, one in enumerate(self._report.variants)
        ]
        explanation = (
            "The share of pods that ran within a time. Pods that had not run by the end count for"
            " the time that they waited."
        )
        title = "From created to running"
        return ReportSection(
            title, explanation, [plot("Share of pods running", axis, lines, maximum=1.0)]
        )

    def volumes(self) -> ReportSection:
        """Return the section of volumes and attach limits by driver."""
        shown = []
        labels = sorted({*self._labels("volumes"), *self._labels("limits")})
        for label in labels[:MAX_PLOTS]:
            lines = [*self._lines(f"limits/{label}", limit=True), *self._lines(f"volumes/{label}")]
            shown.append(plot(f"Volumes of {label}, and attach limits", self._axis, lines))
            if self._has(f"full/{label}"):
                shown.append(
                    self._plot(f"Nodes without a free attach slot for {label}", f"full/{label}")
                )
        omitted = max(0, len(labels) - MAX_PLOTS)
        explanation = "Attached volumes; the thin lines are the limits of all nodes together."
        return ReportSection("Volumes", explanation, shown, omitted)

    def _plot(self, title: str, name: str) -> str:
        return plot(title, self._axis, self._lines(name))

    def _lines(self, name: str, *, limit: bool = False) -> list[Line]:
        suffix = " limit" if limit else ""
        return [
            Line(number, one.name + suffix, one.series[name], limit)
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

    def _total(self, label: str, family: str) -> float:
        return max(sum(line.band.median) for line in self._lines(f"{family}/{label}"))


POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
MAX_SHOWN = 100_000
"""Maximum number of characters of a cluster file that are shown."""


def as_page(report: SimulationReport, inputs: SimulationInputs) -> str:
    """Return the report as an HTML page."""
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
    return files("bayplan.lab.report").joinpath("page.css").read_text()


def _title(report: SimulationReport) -> str:
    names = [one.name for one in report.variants]
    return " against ".join(names[:2]) + (f" and {len(names) - 2} more" if names[2:] else "")


def _body(report: SimulationReport, inputs: SimulationInputs) -> Iterator[str]:
    yield f"<h1>{escape(_title(report) or 'All runs failed')}</h1>"
    yield f"<p>{escape(_summary(report))}</p>"
    yield f"<pre>{escape(report.about.command)}</pre>"
    yield from _failures(report)
    if report.variants:
        yield from _findings(report)
    yield from _inputs(inputs)
    yield (
        f"<footer><p>Made by bayplan {escape(report.about.version)}. The same inputs give the same"
        " report.</p></footer>"
    )


def _summary(report: SimulationReport) -> str:
    seeds = f"{len(report.seeds)} seed{'s' if len(report.seeds) != 1 else ''}"
    text = f"{duration(report.seconds)} simulated, {seeds} for each variant."
    return text + (f" Workloads from the trace {report.trace}." if report.trace else "")


def _failures(report: SimulationReport) -> Iterator[str]:
    if report.failures:
        seeds = listed(sorted({str(one.seed) for one in report.failures}))
        yield f'<h2 class="worse">Failed runs</h2><p>Seeds {escape(seeds)} are excluded:</p><ul>'
        for one in report.failures:
            yield f"<li>{escape(one.variant)}, seed {one.seed}: {escape(one.reason)}</li>"
        yield "</ul>"


def _findings(report: SimulationReport) -> Iterator[str]:
    found = sections(report)
    yield _contents(found)
    yield _legend(report)
    yield '<h2 id="figures">Key figures</h2>'
    yield (
        '<p class="note">Means over seeds, with minimum and maximum. Differences are computed seed'
        " by seed and coloured where all seeds agree.</p>"
    )
    yield figures_table(report)
    for number, one in enumerate(found):
        yield f'<h2 id="s{number}">{escape(one.title)}</h2>'
        yield f'<p class="note">{escape(one.explanation)}</p>'
        if one.omitted:
            yield f'<p class="note">{one.omitted} more are not shown; they are in the CSV.</p>'
        yield f'<div class="plots">{"".join(one.plots)}</div>'
    yield events_tables(report)
    yield runs_table(report)


def _contents(found: Sequence[ReportSection]) -> str:
    links = "".join(
        f'<li><a href="#s{number}">{escape(one.title)}</a></li>' for number, one in enumerate(found)
    )
    return f'<nav><ul><li><a href="#figures">Key figures</a></li>{links}</ul></nav>'


def _legend(report: SimulationReport) -> str:
    items = "".join(
        f'<li><svg viewBox="0 0 36 12" aria-hidden="true"><path class="v{number % COLOURS} line"'
        f' d="M0 6H36"/></svg>{escape(one.name)}</li>'
        for number, one in enumerate(report.variants)
    )
    return f'<ul class="legend">{items}</ul>'


def _inputs(inputs: SimulationInputs) -> Iterator[str]:
    yield f"<h2>Inputs</h2><p>Seeds: {', '.join(str(one) for one in inputs.seeds)}.</p>"
    for one in inputs.variants:
        yield f"<details><summary>{escape(_describe(one))}</summary>{_cluster(one)}</details>"


def _describe(variant: SimulationVariant) -> str:
    parts = [f"{variant.name}: {variant.source}", f"daemons {variant.daemons}"]
    parts += [f"gates {variant.gates}"] if variant.gates else []
    parts += [f"expander {variant.expander}"] if variant.expander else []
    return ", ".join(parts)


def _cluster(variant: SimulationVariant) -> str:
    text: str = yaml.dump(variant.cluster, Dumper=yaml.CSafeDumper, sort_keys=False, width=100)
    cut = f"\n… {len(text) - MAX_SHOWN:,} more characters" if len(text) > MAX_SHOWN else ""
    return f"<pre>{escape(text[:MAX_SHOWN] + cut)}</pre>"
