"""The machines that are switched on, when each was last heard of, and those that die or flap.

A machine that is well beats every ten seconds. That needs no work: when it last beat follows from
when it came up, or from when it fell silent. Leases are written where somebody may read them (see
`leases`), but no decision waits for them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from bayplan.embedded.control.controller import Controller, Do, Plan, RequeueAfter, Stage
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


class Power(Controller[str]):
    """Keyed by machine."""

    name = "power"

    def __init__(self, stage: Stage, fleet: Fleet) -> None:
        self._stage = stage
        self._fleet = fleet
        self._flapping: dict[str, float] = {}

    def decide(self, key: str) -> Plan:
        """Let the machine be as the faults say."""
        machine = self._fleet.find(key)
        if machine is None:
            self._flapping.pop(key, None)
            return []
        about = {"node": key, "group": machine.instance.group.name, "zone": machine.instance.zone}
        dead = self._stage.faults.find("node-dies", **about) is not None
        flap = self._stage.faults.find("node-flaps", **about)
        if flap is None:
            self._flapping.pop(key, None)
            return self._switch(machine, dead=dead)
        silent, left = self._phase(key, flap.period / 2)
        return [*self._switch(machine, dead=dead or silent), RequeueAfter(left)]

    def _switch(self, machine: Machine, *, dead: bool) -> Plan:
        if dead != machine.up:
            return []
        if dead:
            return [Do(f"silence {machine.name}", partial(self._fleet.silence, machine))]
        return [Do(f"revive {machine.name}", partial(self._fleet.revive, machine))]

    def _phase(self, key: str, half: float) -> tuple[bool, float]:
        """Whether a flapping node is silent now, and for how long it stays as it is."""
        now = self._stage.seconds()
        since = now - self._flapping.setdefault(key, now)
        # A hair is added so that a wake-up at the very end of a phase counts as the next one.
        phase = int((since + 1e-6) // half)
        return phase % 2 == 0, max(0.001, (phase + 1) * half - since)
