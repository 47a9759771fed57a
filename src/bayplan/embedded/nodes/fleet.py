"""The running machines and their heartbeats, and faults of machines.

A healthy machine has a heartbeat every ten seconds. That needs no work: the last heartbeat follows
from when it came up, or from when it became silent. Leases are written where clients may read them
(see `health`), but no decision depends on them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from bayplan.embedded.control.controller import (
    Controller,
    ControllerContext,
    LocalAction,
    Plan,
    RequeueAfter,
)
from bayplan.embedded.nodes.machines import SimulatedInstance

BEAT_SECONDS = 10.0


@dataclass(slots=True)
class SimulatedMachine:
    """A machine that can run pods."""

    instance: SimulatedInstance
    up_since: float
    silent_since: float | None = None
    registered: bool = False
    """Whether its node was created; a kubelet does that once."""

    @property
    def name(self) -> str:
        """The name of its node."""
        return self.instance.name

    @property
    def is_up(self) -> bool:
        """Whether its kubelet works."""
        return self.silent_since is None

    def last_beat(self, now: float) -> float:
        """Return the time of its last heartbeat."""
        end = now if self.silent_since is None else self.silent_since
        return self.up_since + max(0.0, end - self.up_since) // BEAT_SECONDS * BEAT_SECONDS


class Fleet:
    """All machines by node name."""

    def __init__(self, context: ControllerContext) -> None:
        self._context = context
        self.machines: dict[str, SimulatedMachine] = {}
        self.listeners: list[Callable[[str], None]] = []
        """Called with the name of a machine that is added, removed, stopped or started."""

    def add(self, instance: SimulatedInstance) -> None:
        """Add a running machine."""
        self.machines[instance.name] = SimulatedMachine(instance, self._context.seconds())
        self._notify(instance.name)

    def remove(self, name: str) -> None:
        """Remove a machine."""
        if self.machines.pop(name, None) is not None:
            self._notify(name)

    def find(self, name: str) -> SimulatedMachine | None:
        """Return the machine of a node, or None."""
        return self.machines.get(name)

    def working(self, name: str) -> SimulatedMachine | None:
        """Return the machine of a node if its kubelet works."""
        machine = self.machines.get(name)
        return machine if machine is not None and machine.is_up else None

    def silence(self, machine: SimulatedMachine) -> None:
        """Stop its kubelet."""
        if machine.is_up:
            machine.silent_since = self._context.seconds()
            self._notify(machine.name)

    def revive(self, machine: SimulatedMachine) -> None:
        """Start its kubelet again."""
        if not machine.is_up:
            machine.silent_since = None
            machine.up_since = self._context.seconds()
            self._notify(machine.name)

    def _notify(self, name: str) -> None:
        for listener in self.listeners:
            listener(name)


class MachineFaults(Controller[str]):
    """Stops and starts machines as the faults require; keyed by machine."""

    name = "power"

    def __init__(self, context: ControllerContext, fleet: Fleet) -> None:
        self._context = context
        self._fleet = fleet
        self._flapping: dict[str, float] = {}

    def decide(self, key: str) -> Plan:
        """Apply the faults of the machine."""
        machine = self._fleet.find(key)
        if machine is None:
            self._flapping.pop(key, None)
            return []
        about = {"node": key, "group": machine.instance.group.name, "zone": machine.instance.zone}
        dead = self._context.faults.find("node-dies", **about) is not None
        flap = self._context.faults.find("node-flaps", **about)
        if flap is None:
            self._flapping.pop(key, None)
            return self._switch(machine, dead=dead)
        silent, left = self._phase(key, flap.period / 2)
        return [*self._switch(machine, dead=dead or silent), RequeueAfter(left)]

    def _switch(self, machine: SimulatedMachine, *, dead: bool) -> Plan:
        if dead != machine.is_up:
            return []
        if dead:
            return [LocalAction(f"silence {machine.name}", partial(self._fleet.silence, machine))]
        return [LocalAction(f"revive {machine.name}", partial(self._fleet.revive, machine))]

    def _phase(self, key: str, half: float) -> tuple[bool, float]:
        """Return whether a flapping node is silent now, and for how long."""
        now = self._context.seconds()
        since = now - self._flapping.setdefault(key, now)
        # A small amount is added so that a wake-up at the end of a phase counts as the next one.
        phase = int((since + 1e-6) // half)
        return phase % 2 == 0, max(0.001, (phase + 1) * half - since)
