"""Health: a node that was not heard of for forty seconds is unknown, and so are its pods."""

from __future__ import annotations

from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.store.entry import Key
from bayplan.embedded.control.controller import Controller, Plan, RequeueAfter, Stage, Tell, Update
from bayplan.embedded.control.storages import NODES
from bayplan.embedded.nodes import podstatus
from bayplan.embedded.nodes.fleet import Fleet
from bayplan.embedded.nodes.objects import condition_status, unknown_conditions, with_conditions

GRACE_SECONDS = 40.0
_SOURCE = "node-controller"


class Health(Controller[str]):
    """Keyed by node."""

    name = "node-health"

    def __init__(self, stage: Stage, fleet: Fleet) -> None:
        self._stage = stage
        self._fleet = fleet

    def decide(self, key: str) -> Plan:
        """Mark the node if it has been silent for too long."""
        machine = self._fleet.find(key)
        node = self._stage.view.get(NODES, "", key)
        if machine is None or machine.up or node is None:
            return []
        now = self._stage.seconds()
        left = machine.last_beat(now) + GRACE_SECONDS - now
        if left > 0:
            return [RequeueAfter(left)]
        return self._mark(key) if condition_status(node, "Ready") != "Unknown" else []

    def _mark(self, name: str) -> Plan:
        key, now = Key(NODES, "", name), self._stage.now()

        def unknown(obj: JsonObject) -> JsonObject:
            return with_conditions(obj, unknown_conditions(now))

        said = f"Node {name} status is now: NodeNotReady"
        plan: Plan = [Update(key, unknown, "status")]
        plan.append(Tell(key, "NodeNotReady", said, source=_SOURCE))
        for pod_key, pod in self._stage.view.pods_on(name):
            if pod.ready:
                plan.append(Update(pod_key, lambda obj: podstatus.not_ready(obj, now), "status"))
                plan.append(Tell(pod_key, "NodeNotReady", "Node is not ready", "Warning", _SOURCE))
        return plan
