"""The key figures of a run, by name; `FIGURES` says what each is, in the order of reports."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from bayplan.lab.measuring import nodes, pods
from bayplan.lab.measuring.series import SeriesBook

HOUR = 3600.0


class Figure(NamedTuple):
    """What a figure is, and whether less of it is better."""

    title: str
    unit: str
    explained: str
    less_is_better: bool | None = True


FIGURES: dict[str, Figure] = {
    "cost": Figure("Cost", "money", "What all instances cost, from purchase to removal or end."),
    "costIdle": Figure(
        "Lost on idle nodes", "money", "Of this, for nodes that were ready and had no pods."
    ),
    "nodeHours": Figure("Node hours", "h", "Instances over time, those that booted included."),
    "nodesBought": Figure("Nodes bought", "", "After the start."),
    "nodesRemoved": Figure("Nodes removed", "", "Given back, or gone.", None),
    "nodesFailed": Figure("Purchases failed", "", "Instances that could not be had."),
    "nodesPeak": Figure("Most nodes ready", "", "At any moment.", None),
    "podsCreated": Figure("Pods created", "", "Without those of DaemonSets.", None),
    "podsRan": Figure("Pods that ran", "", "At some time.", less_is_better=False),
    "podsNeverRan": Figure(
        "Pods that never ran", "", "Until the end, or until they were deleted or had failed."
    ),
    "podsStuck": Figure(
        "Pods stuck",
        "",
        "Sent to a node that could not have one of their volumes, if only for a time.",
    ),
    "p50": Figure("Created to running, half", "s", "Half of the pods ran within this time."),
    "p90": Figure("Created to running, 90 %", "s", "Nine of ten pods ran within this time."),
    "p99": Figure("Created to running, 99 %", "s", "99 of 100 pods ran within this time."),
    "podHoursWaiting": Figure(
        "Pod hours waiting", "h", "Pods without a node that are not stuck, over time."
    ),
    "podHoursStuck": Figure("Pod hours stuck", "h", "Pods that were stuck, over time."),
    "waitingAtEnd": Figure("Waiting at the end", "", "Pods that waited when the run ended."),
    "stuckAtEnd": Figure("Stuck at the end", "", "Pods that were stuck when the run ended."),
    "disruptions": Figure("Disruptions", "", "Pods that were preempted, evicted or drained."),
}


def figures(
    book: SeriesBook, sold: Counter[str], measured: pods.PodMeter
) -> dict[str, float | None]:
    """All figures but the quantiles of time, which the meter knows."""
    groups = sum(one.integral() for _, one in book.family("groups"))
    waiting, stuck = book.of(pods.WAITING), book.of(pods.STUCK)
    counts = measured.counts
    return {
        "cost": book.of(nodes.RATE).integral() / HOUR,
        "costIdle": book.of(nodes.IDLE).integral() / HOUR,
        "nodeHours": groups / HOUR,
        "nodesBought": sold["bought"],
        "nodesRemoved": sold["removed"],
        "nodesFailed": sold["failed"],
        "nodesPeak": book.of(nodes.READY).peak,
        "podsCreated": counts["created"],
        "podsRan": counts["ran"],
        "podsNeverRan": len(measured.waits.censored),
        "podsStuck": counts["stuck"],
        "podHoursWaiting": waiting.integral() / HOUR,
        "podHoursStuck": stuck.integral() / HOUR,
        "waitingAtEnd": waiting.value,
        "stuckAtEnd": stuck.value,
        "disruptions": sum(measured.disruptions.values()),
    }
