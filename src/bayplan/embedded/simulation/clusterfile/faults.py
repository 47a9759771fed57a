"""The section `faults`: as it is written, whom it may strike, and when it comes and goes.

The same words without times inject a fault into a cluster that runs (see `faultcontrol`).
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass

import msgspec

from bayplan.base.configfiles import FieldProblem
from bayplan.base.suggestions import no_such
from bayplan.embedded.control.faults import AIMS, FAULT_KINDS, Fault, FaultKind
from bayplan.embedded.nodes.machines import NodeGroup
from bayplan.kube.configvalues import Duration, Section, find, seconds

_MOST_NODES = 100
_KINDS: Mapping[str, FaultKind] = {kind: kind for kind in FAULT_KINDS}


@dataclass(frozen=True, slots=True)
class ScheduledFault:
    """A fault and when it comes and goes, in seconds from the start."""

    name: str
    fault: Fault
    at: float
    until: float | None


@dataclass(frozen=True, slots=True)
class Targets:
    """Whom a fault can strike."""

    groups: Mapping[str, NodeGroup]
    drivers: Iterable[str]
    present: Container[str] = ()
    """Nodes that there are, in a cluster that runs: their numbers may be above any maximum."""

    @classmethod
    def of(
        cls, groups: Iterable[NodeGroup], drivers: Iterable[str], present: Container[str] = ()
    ) -> Targets:
        """Those of a cluster."""
        return cls({group.name: group for group in groups}, tuple(drivers), present)

    def check(self, fault: Fault, path: str) -> None:
        """Whoever is named must exist; of nodes, be one that the groups could have."""
        zones = {zone for group in self.groups.values() for zone in group.zones}
        for field, what, known in (
            ("group", "node group", set(self.groups)),
            ("driver", "CSI driver", set(self.drivers)),
            ("zone", "zone", zones),
        ):
            name = getattr(fault, field)
            if name and name not in known:
                raise FieldProblem(path + field, no_such(what, name, known))
        if fault.node and fault.node not in self.present and not self._possible(fault.node):
            raise FieldProblem(f"{path}node", no_such("node", fault.node, self._nodes()))

    def _possible(self, name: str) -> bool:
        """Whether a group has such a node, or may have it once it is bought."""
        group, _, number = name.rpartition("-")
        found = self.groups.get(group)
        if found is None or not number.isdecimal() or number != number.lstrip("0"):
            return False
        return int(number[:9]) <= found.maximum

    def _nodes(self) -> list[str]:
        """The nodes at the start; of a group that has none, the first that it would have."""
        return [
            f"{name}-{number}"
            for name, group in self.groups.items()
            for number in range(1, min(max(1, group.count), _MOST_NODES) + 1)
        ]


class FaultSection(Section):
    """A fault, from a moment on, for a while or for good."""

    kind: str
    """What goes wrong."""
    at: Duration = 0
    """From the start."""
    for_: Duration | None = msgspec.field(name="for", default=None)
    """How long; for good if it is not said."""
    node: str = ""
    """Whom it strikes; everybody if nobody is named."""
    group: str = ""
    driver: str = ""
    zone: str = ""
    delay: Duration = 300
    """Of a slow start."""
    period: Duration = 120
    """Of a flapping node."""

    def fault(self, targets: Targets, path: str = "") -> Fault:
        """The fault itself, without its times."""
        kind = find(_KINDS, self.kind, f"{path}kind", "fault")
        period = seconds(self.period, f"{path}period")
        if period <= 0:
            raise FieldProblem(f"{path}period", "must be more than nothing")
        fault = Fault(
            kind=kind,
            node=self.node,
            group=self.group,
            driver=self.driver,
            zone=self.zone,
            delay=seconds(self.delay, f"{path}delay"),
            period=period,
        )
        misaimed = fault.misaimed()
        if misaimed:
            fields = ", ".join(AIMS[kind])
            raise FieldProblem(path + misaimed, f"{kind} can be aimed only by {fields}")
        targets.check(fault, path)
        return fault

    def scheduled(self, index: int, targets: Targets) -> ScheduledFault:
        """The fault and its times."""
        path = f"faults[{index}]."
        fault, at = self.fault(targets, path), seconds(self.at, f"{path}at")
        until = None if self.for_ is None else at + seconds(self.for_, f"{path}for")
        return ScheduledFault(f"file-{index}", fault, at, until)


def faults(sections: list[FaultSection], targets: Targets) -> tuple[ScheduledFault, ...]:
    """The faults and their times."""
    return tuple(one.scheduled(index, targets) for index, one in enumerate(sections))
