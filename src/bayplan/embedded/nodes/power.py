"""Nodes that die or flap: follows the faults and silences or revives machines."""

from __future__ import annotations

from functools import partial

from bayplan.embedded.control.controller import Controller, Do, Plan, RequeueAfter, Stage
from bayplan.embedded.nodes.fleet import Fleet, Machine


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
