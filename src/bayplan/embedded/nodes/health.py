"""Node leases and node health: a node without a heartbeat for forty seconds becomes Unknown.

In virtual time leases are not renewed all the time, since that would be most of the work; node
health never depends on them (see `fleet`). `LeaseRenewal.refresh` brings them up to date, as a
report does at its end.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.store.entry import ObjectKey
from bayplan.embedded.control.controller import (
    Controller,
    ControllerContext,
    Edit,
    Plan,
    RecordEvent,
    RequeueAfter,
    Update,
)
from bayplan.embedded.control.view import LEASES, NODES
from bayplan.embedded.nodes import kubelet
from bayplan.embedded.nodes.fleet import BEAT_SECONDS, Fleet, SimulatedMachine
from bayplan.embedded.nodes.registration import (
    LEASE_NAMESPACE,
    condition_status,
    unknown_conditions,
    with_conditions,
)
from bayplan.kube.times import micro_time

_SLICES = 10
"""Renewals are spread over the interval."""


class LeaseRenewal(Controller[int]):
    """Renews the leases of one tenth of the machines at a time; keyed by that tenth."""

    name = "leases"

    def __init__(self, context: ControllerContext, fleet: Fleet, *, periodically: bool) -> None:
        self._context = context
        self._fleet = fleet
        self._periodically = periodically

    def first(self) -> Iterable[int]:
        """Return all tenths."""
        return range(_SLICES) if self._periodically else ()

    def decide(self, key: int) -> Plan:
        """Renew a tenth of the leases."""
        machines = list(self._fleet.machines.values())[key::_SLICES]
        wait = BEAT_SECONDS * (1 + key / _SLICES)
        slot = self._context.seconds() % BEAT_SECONDS
        return [*self._renewals(machines), RequeueAfter(wait - slot)]

    def refresh(self) -> Plan:
        """Renew all leases."""
        return self._renewals(list(self._fleet.machines.values()))

    def _renewals(self, machines: list[SimulatedMachine]) -> Plan:
        now = self._context.seconds()
        return [
            Update(ObjectKey(LEASES, LEASE_NAMESPACE, machine.name), _renew(machine.last_beat(now)))
            for machine in machines
            if machine.registered and machine.is_up
        ]


def _renew(beat: float) -> Edit:
    renewed = micro_time(datetime.fromtimestamp(beat, UTC))

    def edit(lease: JsonObject) -> JsonObject:
        lease["spec"]["renewTime"] = renewed
        return lease

    return edit


GRACE_SECONDS = 40.0
_SOURCE = "node-controller"


class NodeHealth(Controller[str]):
    """Sets the conditions of silent nodes to Unknown; keyed by node."""

    name = "node-health"

    def __init__(self, context: ControllerContext, fleet: Fleet) -> None:
        self._context = context
        self._fleet = fleet

    def decide(self, key: str) -> Plan:
        """Mark the node if it has been silent for too long."""
        machine = self._fleet.find(key)
        node = self._context.view.get(NODES, "", key)
        if machine is None or machine.is_up or node is None:
            return []
        now = self._context.seconds()
        left = machine.last_beat(now) + GRACE_SECONDS - now
        if left > 0:
            return [RequeueAfter(left)]
        return self._mark(key) if condition_status(node, "Ready") != "Unknown" else []

    def _mark(self, name: str) -> Plan:
        key, now = ObjectKey(NODES, "", name), self._context.now()

        def unknown(obj: JsonObject) -> JsonObject:
            return with_conditions(obj, unknown_conditions(now))

        message = f"Node {name} status is now: NodeNotReady"
        plan: Plan = [Update(key, unknown, "status")]
        plan.append(RecordEvent(key, "NodeNotReady", message, source=_SOURCE))
        for pod_key, pod in self._context.view.pods_on(name):
            if pod.is_ready:
                plan.append(Update(pod_key, lambda obj: kubelet.not_ready(obj, now), "status"))
                plan.append(
                    RecordEvent(pod_key, "NodeNotReady", "Node is not ready", "Warning", _SOURCE)
                )
        return plan
