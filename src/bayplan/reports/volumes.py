"""The report of `bayplan volumes`: attachments in use and limits, by node and by driver.

`*_data` is the JSON and YAML output, whose stable format docs/commands/volumes.md describes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bayplan.autoscaler.providers.declared.declaration import Declaration
from bayplan.base.errors import InputError
from bayplan.base.suggestions import no_such
from bayplan.fit import Snapshot
from bayplan.fit.state.volume_report import VolumeReport, VolumeUse
from bayplan.fit.volumes.limits import Limit, LimitSource
from bayplan.kube.attachlimits import invalid_attach_limits
from bayplan.kube.gates import ATTACH_VOLUME_LIMIT
from bayplan.kube.nodes import Node

if TYPE_CHECKING:
    from bayplan.base.values import JsonValue

_PERCENT = re.compile(r"([0-9]{1,3}(?:\.[0-9]{1,3})?)\s*%?")
NEARLY_FULL = 0.8


@dataclass(frozen=True, slots=True)
class VolumeSelection:
    """The filters of rows."""

    nodes: frozenset[str] = frozenset()
    drivers: frozenset[str] = frozenset()
    over: float | None = None
    """The least used share of the limit."""
    namespace: str = ""
    """The namespace of pods that must use a volume there; empty for all."""

    @classmethod
    def of(
        cls, nodes: Sequence[str], drivers: Sequence[str], over: str, namespace: str = ""
    ) -> VolumeSelection:
        """Parse the filters; InputError if `over` is not a percentage."""
        part = _part(over) if over else None
        return cls(frozenset(nodes), frozenset(drivers), part, namespace)

    def among(self, reports: Sequence[VolumeReport]) -> list[VolumeReport]:
        """Return the selected reports; InputError for an unknown node or driver."""
        _check("node", "--node", self.nodes, {one.node for one in reports})
        _check("driver", "--driver", self.drivers, {one.driver for one in reports})
        return [one for one in reports if self._includes(one)]

    @property
    def empty_message(self) -> str:
        """The message if no report is selected."""
        if self == VolumeSelection():
            return "no node has a CSI driver, an attach limit, or a volume"
        return "no node matches"

    def _includes(self, one: VolumeReport) -> bool:
        return (
            (not self.nodes or one.node in self.nodes)
            and (not self.drivers or one.driver in self.drivers)
            and (self.over is None or share_used(one) >= self.over)
            and (not self.namespace or _is_used_from(one, self.namespace))
        )


def _is_used_from(one: VolumeReport, namespace: str) -> bool:
    prefix = f"{namespace}/"
    return any(pod.startswith(prefix) for use in one.uses for pod in use.pods)


def _check(what: str, option: str, asked: Iterable[str], known: set[str]) -> None:
    for name in sorted(asked):
        if name not in known:
            raise InputError(f"{option}: {no_such(what, name[:80], known)}")


def _part(written: str) -> float:
    found = _PERCENT.fullmatch(written.strip())
    if found is None or float(found[1]) > 100:
        raise InputError(f"--over {written[:40]}: not a percentage, such as 80%")
    return float(found[1]) / 100


def share_used(one: VolumeReport) -> float:
    """Return the used share of the limit; below zero if there is no limit."""
    if one.limit.count is None:
        return -1.0
    return one.used / one.limit.count if one.limit.count else 1.0


def fullest_first(reports: Iterable[VolumeReport]) -> list[VolumeReport]:
    """Sort reports by used share, the fullest first; then by node and driver."""
    return sorted(reports, key=lambda one: (-share_used(one), one.node, one.driver))


@dataclass(frozen=True, slots=True)
class DriverSummary:
    """The sums over all nodes of a driver."""

    driver: str
    nodes: int
    used: int
    limit: int | None
    """The sum of attach limits; None if a node has no limit."""
    full: int
    nearly: int
    """Nodes with at least 80 % of the limit in use, including full ones."""
    fullest: VolumeReport


def by_driver(reports: Iterable[VolumeReport]) -> list[DriverSummary]:
    """Return the summaries of all drivers, the one with the most full nodes first."""
    found: dict[str, list[VolumeReport]] = {}
    for one in reports:
        found.setdefault(one.driver, []).append(one)
    summaries = [_summary(driver, some) for driver, some in found.items()]
    return sorted(summaries, key=lambda one: (-one.full, -one.nearly, one.driver))


def _summary(driver: str, reports: list[VolumeReport]) -> DriverSummary:
    limits = [one.limit.count for one in reports]
    known = [count for count in limits if count is not None]
    return DriverSummary(
        driver,
        nodes=len(reports),
        used=sum(one.used for one in reports),
        limit=sum(known) if len(known) == len(limits) else None,
        full=sum(one.is_full for one in reports),
        nearly=sum(share_used(one) >= NEARLY_FULL for one in reports),
        fullest=fullest_first(reports)[0],
    )


def summary_data(summaries: Sequence[DriverSummary]) -> JsonValue:
    """Return the summaries as data."""
    return [
        {
            "driver": one.driver,
            "nodes": one.nodes,
            "used": one.used,
            "limit": one.limit,
            "fullNodes": one.full,
            "nearlyFullNodes": one.nearly,
            "fullest": one.fullest.node,
        }
        for one in summaries
    ]


def template_volumes(declared: Iterable[Declaration]) -> list[VolumeReport]:
    """Return the attach limits of the next node of each group, from the group's template."""
    return [
        VolumeReport(f"next of {one.group}", driver, Limit(count, LimitSource.TEMPLATE))
        for one in declared
        for driver, count in sorted((one.limits or {}).items())
    ]


def invalid_limits(snapshot: Snapshot) -> Iterator[str]:
    """Yield a warning for each invalid attach limit of a node."""
    if not snapshot.profile.gates.enabled(ATTACH_VOLUME_LIMIT):
        return
    for node in (one for one in snapshot.objects() if isinstance(one, Node)):
        for key, written in invalid_attach_limits(node.status.allocatable).items():
            yield f"node {node.name}: {key}: {written!r} is not a valid limit, ignored"


def volume_data(report: VolumeReport) -> JsonValue:
    """Return a report as data."""
    limit = report.limit
    return {
        "node": report.node,
        "driver": report.driver,
        "used": report.used,
        "limit": limit.count,
        "free": report.free,
        "over": report.over,
        "source": limit.source.value,
        "sourceDetail": limit.detail,
        "sourceRow": report.row,
        "volumes": [_use_data(use) for use in report.uses],
    }


def _use_data(use: VolumeUse) -> JsonValue:
    return {
        "handle": use.handle,
        "pods": list(use.pods),
        "attachments": list(use.attachments),
    }
