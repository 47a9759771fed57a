"""The report of a simulated cluster, and the tables of its screen."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from rich.console import Group, RenderableType
from rich.text import Text

from bayplan.base.durations import format_duration
from bayplan.cli.text.output import printable, table
from bayplan.embedded.simulation.report import (
    BootingInstance,
    NodeSummary,
    SimulationSummary,
    UnboundPod,
)

Reason = Callable[[UnboundPod], str]
"""Returns why a pod is pending."""
_BOILERPLATE = re.compile(r'AttachVolume\.Attach failed for volume "[^"]*" : (?:rpc error: )?')
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


class Rows(NamedTuple):
    """The rows of a table, the most important first."""

    headings: tuple[str, ...]
    rows: Sequence[tuple[str | Text, ...]]

    def shown(self, most: int, *, cut: bool = False) -> RenderableType:
        """Return the first rows, each cut to one line if `cut`, and the number of others."""
        rows = self.rows[:most]
        block = table(self.headings, [[*map(_one_line, row)] for row in rows] if cut else rows)
        more = len(self.rows) - most
        return Group(block, Text(f"and {more} more")) if more > 0 else block


def headline(summary: SimulationSummary, *, narrow: bool = False) -> str:
    """Return the summary of the cluster in one line."""
    names = _driver_names(summary.nodes, narrow=narrow)
    phases = ", ".join(f"{count} {name}" for name, count in sorted(summary.phases.items()))
    failed = sum(bool(one.error) for one in summary.booting)
    coming = len(summary.booting) - failed
    parts = [
        format_duration(int(summary.seconds)),
        f"{summary.ready}/{len(summary.nodes)} nodes ready",
        *([f"{coming} booting"] if coming else []),
        *([f"{failed} failed"] if failed else []),
        f"pods: {phases or 'none'}",
    ]
    volumes = ", ".join(_totals(summary.nodes, names))
    if volumes:
        parts.append(f"volumes: {volumes}")
    if summary.faults:
        parts.append(f"faults: {', '.join(summary.faults)}")
    return printable(" · ".join(parts))


def hint(summary: SimulationSummary) -> str:
    """Return what to do about pods without a scheduler; empty if there are none."""
    if not summary.untried:
        return ""
    pods = "1 pod waits" if summary.untried == 1 else f"{summary.untried} pods wait"
    return (
        f"{pods} for a scheduler, and none is running: use --with scheduler, or run one with this"
        " KUBECONFIG"
    )


def node_rows(summary: SimulationSummary, *, narrow: bool) -> Rows:
    """Return nodes with problems, then booting instances, then the fullest nodes."""
    names = _driver_names(summary.nodes, narrow=narrow)
    ordered = sorted(
        summary.nodes,
        key=lambda one: (_well(one), -_fullness(one), one.name),
    )
    trouble = sum(not _well(one) for one in summary.nodes)
    lines = [(one.name, _state(one), str(one.pods), _volumes(one, names)) for one in ordered]
    failed = [one for one in summary.booting if one.error]
    coming = [one for one in summary.booting if not one.error]
    return Rows(
        ("NODE", "STATE", "PODS", "VOLUMES"),
        [*_instances(failed), *lines[:trouble], *_instances(coming), *lines[trouble:]],
    )


def waiting_rows(summary: SimulationSummary, reason: Reason) -> Rows:
    """Return pending pods; those of one owner with the same reason in one row."""
    found: Counter[tuple[str, ...]] = Counter()
    for one in summary.unbound_pods:
        text = _brief(reason(one))
        text = text if one.message else _untried(one, text)
        found[_pods(one.key.namespace, one.owner, one.key.name), text] += 1
    return Rows(("PENDING", "REASON"), _counted(found))


def stuck_rows(summary: SimulationSummary) -> Rows:
    """Return pods on a node that neither start nor end; those of one owner and node in one row."""
    found: Counter[tuple[str, ...]] = Counter()
    for one in summary.stuck_pods:
        found[_pods(one.key.namespace, one.owner, one.key.name), one.node, _brief(one.reason)] += 1
    return Rows(("STUCK", "NODE", "REASON"), _counted(found))


def report_table(
    summary: SimulationSummary, took: float, changes: int, digest: str
) -> RenderableType:
    """Return the figures of a run."""
    rows = [
        ("simulated", format_duration(int(summary.seconds))),
        ("took", f"{took:.1f}s"),
        ("nodes", f"{summary.ready} ready of {len(summary.nodes)}"),
        ("instances", _listed(summary.instances)),
        ("pods", _listed(summary.phases)),
        ("pending", str(len(summary.unbound_pods))),
        ("stuck", str(len(summary.stuck_pods))),
        ("claims", _listed(summary.claims)),
        ("volumes", "; ".join(_totals(summary.nodes, {})) or "none"),
        ("warnings", _listed(summary.warnings)),
        ("cost", f"{summary.spent:.2f}"),
    ]
    if digest:
        rows += [("changes", str(changes)), ("log", f"sha256:{digest}")]
    report = table(("", ""), rows)
    return Group(report, Text(hint(summary), style="yellow")) if summary.untried else report


def _one_line(cell: str | Text) -> Text:
    text = cell.copy() if isinstance(cell, Text) else Text(printable(cell))
    text.no_wrap, text.overflow = True, "ellipsis"
    return text


def _counted(found: Counter[tuple[str, ...]]) -> list[tuple[str | Text, ...]]:
    return [
        (f"{pods} ({count})" if count > 1 else pods, *rest)
        for (pods, *rest), count in found.items()
    ]


def _pods(namespace: str, owner: str, name: str) -> str:
    return f"{namespace}/{owner or name}"


def _brief(why: str) -> str:
    """Return a reason without preemption, and without what differs between volumes."""
    return _UUID.sub("…", _BOILERPLATE.sub("", why.partition(" preemption: ")[0]))


def _untried(one: UnboundPod, model: str) -> str:
    """Return that no scheduler has tried a pod, and the result of the model."""
    text = f"waits for scheduler {one.scheduler}" if one.scheduler else "not tried by a scheduler"
    return f"{text}; {model}" if model else text


def _instances(instances: list[BootingInstance]) -> list[tuple[str | Text, ...]]:
    """Return instances that are not nodes yet; those of a group with the same error in one row."""
    groups: dict[tuple[str, str], list[BootingInstance]] = {}
    for one in instances:
        groups.setdefault((one.group, one.error), []).append(one)
    return [
        (mine[0].name if len(mine) == 1 else f"{group} ({len(mine)})", _boot_state(mine), "", "")
        for (group, _), mine in groups.items()
    ]


def _well(node: NodeSummary) -> bool:
    return node.ready == "True" and not node.cordoned and node.silent is None


def _boot_state(alike: list[BootingInstance]) -> Text:
    if alike[0].error:
        return Text(printable(f"failed: {alike[0].error}"), style="red")
    left = sorted({max(1, round(one.left)) for one in alike if one.left is not None})
    if not left:
        return Text("booting", style="cyan")
    ends = [format_duration(one) for one in (left[0], left[-1])]
    return Text(f"booting, ready in {' to '.join(dict.fromkeys(ends))}", style="cyan")


def _state(node: NodeSummary) -> Text:
    ready = {"True": "Ready", "False": "NotReady"}.get(node.ready, node.ready)
    notes = ["cordoned"] if node.cordoned else []
    if node.silent is not None:
        notes.append(f"no heartbeat for {format_duration(int(node.silent))}")
    style = "red" if node.ready != "True" else "yellow" if notes else "green"
    return Text(printable(", ".join([ready, *notes])), style=style)


def _fullness(node: NodeSummary) -> float:
    shares = [used / limit for used, limit in node.volumes.values() if limit]
    return max(shares, default=0.0)


def _driver_names(nodes: Iterable[NodeSummary], *, narrow: bool) -> dict[str, str]:
    """Return short names of drivers: the first part of the name, if it is unique."""
    drivers = {driver for node in nodes for driver in node.volumes}
    if not narrow:
        return {one: one for one in drivers}
    first = Counter(driver.partition(".")[0] for driver in drivers)
    return {
        one: one.partition(".")[0] if first[one.partition(".")[0]] == 1 else one for one in drivers
    }


def _volumes(node: NodeSummary, names: dict[str, str]) -> str:
    if not node.volumes:
        return "no driver"
    return ", ".join(
        f"{names[driver]} {_of(used, limit)}"
        for driver, (used, limit) in sorted(node.volumes.items())
    )


def _totals(nodes: Iterable[NodeSummary], names: dict[str, str]) -> list[str]:
    used: Counter[str] = Counter()
    limits: dict[str, int | None] = defaultdict(int)
    for node in nodes:
        for driver, (count, limit) in node.volumes.items():
            used[driver] += count
            before = limits[driver]
            limits[driver] = None if limit is None or before is None else before + limit
    return [
        f"{names.get(driver, driver)} {_of(used[driver], limit)}"
        for driver, limit in sorted(limits.items())
    ]


def _of(used: int, limit: int | None) -> str:
    return f"{used}/{'∞' if limit is None else limit}"


def _listed(counts: Counter[str]) -> str:
    return ", ".join(f"{count} {name}" for name, count in sorted(counts.items())) or "none"
