"""Which plots a report has: by section, only where there is something to see."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from bayplan.lab.reporting.plots import Line, log_axis, plot, time_axis
from bayplan.lab.reporting.report import Report

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
