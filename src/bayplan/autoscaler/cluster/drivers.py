"""CSI drivers of a group's nodes: what was promised, what is reported, and what to believe."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from bayplan.kube.storage import CSINode, CSINodeDriver, VolumeNodeResources

Limits = Mapping[str, int | None]
"""By driver; None is a driver without a limit."""


def limits_of(csinode: CSINode | None) -> dict[str, int | None]:
    """What a CSINode says."""
    drivers = csinode.spec.drivers if csinode is not None else ()
    return {one.name: one.allocatable.count if one.allocatable else None for one in drivers}


def promised(declared: CSINode | None, common: Limits) -> dict[str, bool]:
    """The drivers that a new node must report, and whether with a count: those that were declared,
    and those that every node of the group has which has long been ready.
    """
    said = {**common, **limits_of(declared)}
    return {name: limit is not None for name, limit in said.items()}


def common(reports: Iterable[CSINode | None]) -> dict[str, int | None]:
    """The drivers that all of these report; none if there are no reports."""
    found: dict[str, int | None] | None = None
    for report in reports:
        if found is None:
            found = limits_of(report)
            continue
        there = {one.name for one in report.spec.drivers} if report is not None else set()
        if not found.keys() <= there:
            found = {name: limit for name, limit in found.items() if name in there}
    return found or {}


def least(reports: Iterable[CSINode | None]) -> dict[str, int]:
    """By driver the lowest limit that one of these reports."""
    found: dict[str, int] = {}
    for report in reports:
        for name, limit in limits_of(report).items():
            if limit is not None:
                found[name] = min(limit, found.get(name, limit))
    return found


def believed(promised: CSINode | None, reported: Mapping[str, int]) -> CSINode | None:
    """What was promised, but for drivers whose nodes report less."""
    if promised is None:
        return None
    drivers = [_lowered(one, reported.get(one.name)) for one in promised.spec.drivers]
    return replace(promised, spec=replace(promised.spec, drivers=drivers))


def _lowered(driver: CSINodeDriver, reported: int | None) -> CSINodeDriver:
    limit = driver.allocatable.count if driver.allocatable else None
    if reported is None or (limit is not None and limit <= reported):
        return driver
    return replace(driver, allocatable=VolumeNodeResources(count=reported))
