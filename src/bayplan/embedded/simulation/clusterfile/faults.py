"""The section `faults`: its fields, targets and times.

The same fields without times inject a fault into a running cluster (see `schedule`).
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass

import msgspec

from bayplan.base.configfiles import FieldProblem
from bayplan.base.suggestions import no_such
from bayplan.embedded.control.faults import FAULT_KINDS, TARGET_FIELDS, Fault, FaultKind
from bayplan.embedded.nodes.machines import SimulatedNodeGroup
from bayplan.kube.configvalues import Duration, Section, look_up, seconds

_MAX_NODES = 100
_KINDS: Mapping[str, FaultKind] = {kind: kind for kind in FAULT_KINDS}


@dataclass(frozen=True, slots=True)
class ScheduledFault:
    """A fault, and its begin and end in seconds from the start."""

    name: str
    fault: Fault
    at: float
    until: float | None


@dataclass(frozen=True, slots=True)
class Targets:
    """The possible targets of faults."""

    groups: Mapping[str, SimulatedNodeGroup]
    drivers: Iterable[str]
    present: Container[str] = ()
    """Existing nodes of a running cluster: their numbers may be above any maximum."""

    @classmethod
    def of(
        cls,
        groups: Iterable[SimulatedNodeGroup],
        drivers: Iterable[str],
        present: Container[str] = (),
    ) -> Targets:
        """Return the targets of a cluster."""
        return cls({group.name: group for group in groups}, tuple(drivers), present)

    def check(self, fault: Fault, path: str) -> None:
        """Refuse targets that do not exist and cannot be created by the groups."""
        zones = {zone for group in self.groups.values() for zone in group.zones}
        for field, what, known in (
            ("group", "node group", set(self.groups)),
            ("driver", "CSI driver", set(self.drivers)),
            ("zone", "zone", zones),
        ):
            name = getattr(fault, field)
            if name and name not in known:
                raise FieldProblem(path + field, no_such(what, name, known))
        if fault.node and fault.node not in self.present and not self._is_possible(fault.node):
            raise FieldProblem(f"{path}node", no_such("node", fault.node, self._nodes()))

    def _is_possible(self, name: str) -> bool:
        """Return whether a group has such a node, or may create it."""
        group, _, number = name.rpartition("-")
        found = self.groups.get(group)
        if found is None or not number.isdecimal() or number != number.lstrip("0"):
            return False
        return int(number[:9]) <= found.maximum

    def _nodes(self) -> list[str]:
        """Return the nodes at the start; of an empty group, the first that it would have."""
        return [
            f"{name}-{number}"
            for name, group in self.groups.items()
            for number in range(1, min(max(1, group.count), _MAX_NODES) + 1)
        ]


class FaultSection(Section):
    """A fault from a time on, for a duration or forever."""

    kind: str
    """The kind of fault."""
    at: Duration = 0
    """Start, counted from the start of the run."""
    for_: Duration | None = msgspec.field(name="for", default=None)
    """Duration; without it the fault does not end."""
    node: str = ""
    """Target; without any target field the fault applies everywhere."""
    group: str = ""
    driver: str = ""
    zone: str = ""
    delay: Duration = 300
    """Additional time of a slow start."""
    period: Duration = 120
    """Period of a flapping node."""

    def fault(self, targets: Targets, path: str = "") -> Fault:
        """Return the fault without its times."""
        kind = look_up(_KINDS, self.kind, f"{path}kind", "fault")
        period = seconds(self.period, f"{path}period")
        if period <= 0:
            raise FieldProblem(f"{path}period", "must be greater than zero")
        fault = Fault(
            kind=kind,
            node=self.node,
            group=self.group,
            driver=self.driver,
            zone=self.zone,
            delay=seconds(self.delay, f"{path}delay"),
            period=period,
        )
        misaimed = fault.unsupported_target()
        if misaimed:
            fields = ", ".join(TARGET_FIELDS[kind])
            raise FieldProblem(path + misaimed, f"{kind} supports only the target fields: {fields}")
        targets.check(fault, path)
        return fault

    def scheduled(self, index: int, targets: Targets) -> ScheduledFault:
        """Return the fault and its times."""
        path = f"faults[{index}]."
        fault, at = self.fault(targets, path), seconds(self.at, f"{path}at")
        until = None if self.for_ is None else at + seconds(self.for_, f"{path}for")
        return ScheduledFault(f"file-{index}", fault, at, until)


def faults(sections: list[FaultSection], targets: Targets) -> tuple[ScheduledFault, ...]:
    """Return the faults and their times."""
    return tuple(one.scheduled(index, targets) for index, one in enumerate(sections))
