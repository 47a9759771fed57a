"""The CSI drivers and attach limits that a group's next node is expected to have.

Limits of a driver, the first that exists:

1. the declared limit;
2. the limit that most healthy nodes of the group report;
3. the limit that the provider computes from the instance type.

Drivers are the declared ones, and those that at least half of the healthy nodes have. So one odd
node changes nothing: it is an outlier, which is reported. A declaration is corrected only if two or
more healthy nodes report, and all of them less than declared: scale-ups would not help otherwise,
and would be repeated up to the group's maximum size.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from bayplan.nodegroups.templates import Limits

ABSENT = "absent"
"""What an outlier reports that does not have the driver."""
_UNLIMITED = 1 << 40


@dataclass(frozen=True, slots=True)
class DriverReport:
    """The drivers that a healthy node reports, with their limits."""

    node: str
    limits: Mapping[str, int | None]
    instance_type: str = ""


@dataclass(frozen=True, slots=True)
class DriverOutlier:
    """A node whose driver or limit differs from what its group is expected to have."""

    node: str
    driver: str
    reported: str
    expected: str

    def __str__(self) -> str:
        return (
            f"node {self.node} reports {self.reported} for CSI driver {self.driver}, other nodes or"
            f" the declaration {self.expected}: new nodes are planned with {self.expected}"
        )


@dataclass(frozen=True, slots=True)
class ExpectedDrivers:
    """The drivers of a group's next node, with their limits."""

    limits: Limits = field(default_factory=dict)
    outliers: tuple[DriverOutlier, ...] = ()
    problems: tuple[str, ...] = ()
    """Declarations that are not used, or that would be needed."""


def expected_drivers(
    declared: Mapping[str, int | None],
    computed: Mapping[str, int | None],
    reports: Sequence[DriverReport],
) -> ExpectedDrivers:
    """Return the drivers of a group's next node."""
    names = {*declared, *common_drivers(reports)}
    if not reports:
        names |= computed.keys()
    limits: Limits = {}
    corrected = []
    for name in sorted(names):
        reported = [one.limits[name] for one in reports if name in one.limits]
        if name in declared and not is_contradicted(declared[name], reported):
            limits[name] = declared[name]
            continue
        limits[name] = most_common(reported, computed.get(name)) if reported else computed[name]
        if name in declared:
            corrected.append(_correction(name, declared[name], limits[name], len(reported)))
    return ExpectedDrivers(limits, tuple(_outliers(limits, reports)), tuple(corrected))


def common_drivers(reports: Sequence[DriverReport]) -> frozenset[str]:
    """Return the drivers that at least half of the nodes have."""
    counts = Counter(name for one in reports for name in one.limits)
    return frozenset(name for name, count in counts.items() if 2 * count >= len(reports))


def drivers_of_most(reports: Sequence[DriverReport]) -> frozenset[str]:
    """Return the drivers that more than half of the nodes have."""
    counts = Counter(name for one in reports for name in one.limits)
    return frozenset(name for name, count in counts.items() if 2 * count > len(reports))


def same_type(reports: Sequence[DriverReport], instance_type: str) -> Sequence[DriverReport]:
    """Return the reports of nodes of an instance type; all if there are none of it."""
    return [one for one in reports if one.instance_type == instance_type] or reports


def is_contradicted(declared: int | None, reported: Sequence[int | None]) -> bool:
    """Whether several nodes report, and all of them less than declared, or no limit."""
    most = _UNLIMITED if declared is None else declared
    return len(reported) > 1 and all(
        (one is None and declared is not None) or (one is not None and one < most)
        for one in reported
    )


def most_common(reported: Iterable[int | None], computed: int | None = None) -> int | None:
    """Return the limit that most nodes report; of equally many the computed, or else the highest.

    A limit that is too high costs another scale-up; one that is too low costs nodes.
    """
    counts = Counter(reported)
    most = max(counts.values())
    tied = [limit for limit, count in counts.items() if count == most]
    if computed is not None and computed in tied:
        return computed
    return max(tied, key=lambda limit: _UNLIMITED if limit is None else limit)


def _outliers(limits: Limits, reports: Iterable[DriverReport]) -> Iterator[DriverOutlier]:
    for one in (report for report in reports if report.node):
        for name, expected in limits.items():
            if name not in one.limits:
                yield DriverOutlier(one.node, name, ABSENT, limit_text(expected))
            elif one.limits[name] != expected:
                reported = limit_text(one.limits[name])
                yield DriverOutlier(one.node, name, reported, limit_text(expected))


def _correction(name: str, declared: int | None, used: int | None, nodes: int) -> str:
    return (
        f"CSI driver {name}: declared with {limit_text(declared)}, but all {nodes} healthy nodes"
        f" report less: {limit_text(used)} is used"
    )


def limit_text(limit: int | None) -> str:
    """Format a limit for messages."""
    return "no limit" if limit is None else f"limit {limit}"
