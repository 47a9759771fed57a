"""The machines that are switched on, and when each was last heard of.

A machine that is well beats every ten seconds. That needs no work: when it last beat follows from
when it came up, or from when it fell silent. Leases are written where somebody may read them (see
`leases`), but no decision waits for them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bayplan.embedded.control.controller import Stage
from bayplan.embedded.nodes.machines import Instance

BEAT_SECONDS = 10.0


@dataclass(slots=True)
class Machine:
    """A machine that could run pods."""

    instance: Instance
    up_since: float
    silent_since: float | None = None
    registered: bool = False
    """Whether its node was made; a kubelet does that once."""

    @property
    def name(self) -> str:
        """The name of its node."""
        return self.instance.name

    @property
    def up(self) -> bool:
        """Whether its kubelet works."""
        return self.silent_since is None

    def last_beat(self, now: float) -> float:
        """When it was last heard of."""
        end = now if self.silent_since is None else self.silent_since
        return self.up_since + max(0.0, end - self.up_since) // BEAT_SECONDS * BEAT_SECONDS


class Fleet:
    """All machines by node name."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self.machines: dict[str, Machine] = {}
        self.listeners: list[Callable[[str], None]] = []
        """Told the name of a machine that comes, goes, falls silent or is back."""

    def add(self, instance: Instance) -> None:
        """Switch a machine on."""
        self.machines[instance.name] = Machine(instance, self._stage.seconds())
        self._tell(instance.name)

    def remove(self, name: str) -> None:
        """Take a machine away."""
        if self.machines.pop(name, None) is not None:
            self._tell(name)

    def find(self, name: str) -> Machine | None:
        """The machine behind a node."""
        return self.machines.get(name)

    def working(self, name: str) -> Machine | None:
        """The machine behind a node, if its kubelet works."""
        machine = self.machines.get(name)
        return machine if machine is not None and machine.up else None

    def silence(self, machine: Machine) -> None:
        """Its kubelet stops."""
        if machine.up:
            machine.silent_since = self._stage.seconds()
            self._tell(machine.name)

    def revive(self, machine: Machine) -> None:
        """Its kubelet works again."""
        if not machine.up:
            machine.silent_since = None
            machine.up_since = self._stage.seconds()
            self._tell(machine.name)

    def _tell(self, name: str) -> None:
        for listener in self.listeners:
            listener(name)
