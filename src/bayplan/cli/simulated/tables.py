"""The live table and the report of a simulated cluster."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable

from rich.console import Group, RenderableType
from rich.text import Text

from bayplan.cli.output import printable, table
from bayplan.embedded.simulation.report import NodeLine, Summary, Waiting
from bayplan.kube.durations import format_duration

SHOWN_NODES = 20
SHOWN_PODS = 8

Why = Callable[[Waiting], str]
"""Says why a pod waits."""


def cluster_table(summary: Summary, why: Why) -> RenderableType:
    """Nodes, pods, volumes, and who waits for what."""
    blocks: list[RenderableType] = [Text(headline(summary), style="bold"), Text()]
    blocks.append(_nodes(summary.nodes))
    waiting = summary.waiting[:SHOWN_PODS]
    if waiting:
        rows = [(f"{one.key.namespace}/{one.key.name}", _brief(why(one))) for one in waiting]
        blocks += [Text(), table(("WAITING", "WHY"), rows)]
        more = len(summary.waiting) - len(waiting)
        if more:
            blocks.append(Text(f"and {more} more"))
    return Group(*blocks)


def headline(summary: Summary) -> str:
    """The cluster in one line."""
    phases = ", ".join(f"{count} {name}" for name, count in sorted(summary.phases.items()))
    parts = [
        format_duration(int(summary.seconds)),
        f"{summary.ready}/{len(summary.nodes)} nodes ready",
        f"pods: {phases or 'none'}",
        *(f"volumes {one}" for one in _totals(summary.nodes)),
    ]
    if summary.faults:
        parts.append(f"faults: {', '.join(summary.faults)}")
    return " · ".join(parts)


def report_table(summary: Summary, took: float, changes: int, digest: str) -> RenderableType:
    """What a run came to."""
    rows = [
        ("simulated", format_duration(int(summary.seconds))),
        ("took", f"{took:.1f}s"),
        ("nodes", f"{summary.ready} ready of {len(summary.nodes)}"),
        ("instances", _listed(summary.instances)),
        ("pods", _listed(summary.phases)),
        ("waiting", str(len(summary.waiting))),
        ("claims", _listed(summary.claims)),
        ("volumes", "; ".join(_totals(summary.nodes)) or "none"),
        ("warnings", _listed(summary.warnings)),
        ("cost", f"{summary.spent:.2f}"),
    ]
    if digest:
        rows += [("changes", str(changes)), ("log", f"sha256:{digest}")]
    return table(("", ""), rows)


def _nodes(nodes: list[NodeLine]) -> RenderableType:
    """The nodes that are worth looking at first: unready ones, then the fullest."""
    ordered = sorted(nodes, key=lambda one: (one.ready == "True", -_fullness(one), one.name))
    rows = [
        (one.name, one.group, _ready(one.ready), str(one.pods), _volumes(one.volumes))
        for one in ordered[:SHOWN_NODES]
    ]
    shown = table(("NODE", "GROUP", "READY", "PODS", "VOLUMES"), rows)
    more = len(nodes) - len(rows)
    return Group(shown, Text(f"and {more} more")) if more else shown


def _brief(why: str) -> str:
    """Why, without what a scheduler adds about preemption."""
    return why.partition(" preemption: ")[0]


def _ready(status: str) -> Text:
    return Text(printable(status), style="green" if status == "True" else "red")


def _fullness(node: NodeLine) -> float:
    shares = [used / limit for used, limit in node.volumes.values() if limit]
    return max(shares, default=0.0)


def _volumes(volumes: dict[str, tuple[int, int | None]]) -> str:
    if not volumes:
        return "no driver"
    return ", ".join(
        f"{driver} {used}/{'∞' if limit is None else limit}"
        for driver, (used, limit) in sorted(volumes.items())
    )


def _totals(nodes: Iterable[NodeLine]) -> list[str]:
    used: Counter[str] = Counter()
    limits: dict[str, int | None] = defaultdict(int)
    for node in nodes:
        for driver, (count, limit) in node.volumes.items():
            used[driver] += count
            before = limits[driver]
            limits[driver] = None if limit is None or before is None else before + limit
    return [
        f"{driver} {used[driver]}/{'∞' if limit is None else limit}"
        for driver, limit in sorted(limits.items())
    ]


def _listed(counts: Counter[str]) -> str:
    return ", ".join(f"{count} {name}" for name, count in sorted(counts.items())) or "none"
