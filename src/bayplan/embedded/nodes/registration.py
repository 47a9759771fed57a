"""Nodes register, become ready a moment later, and are deleted when their machines are gone."""

from __future__ import annotations

from collections.abc import Iterable

from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.store.entry import Key
from bayplan.embedded.apiserver.store.watchcache import Change
from bayplan.embedded.control.controller import (
    Controller,
    Create,
    Delete,
    Plan,
    RequeueAfter,
    Stage,
    Tell,
    Update,
)
from bayplan.embedded.control.facts import moment
from bayplan.embedded.control.storages import LEASES, NODES
from bayplan.embedded.nodes.fleet import Fleet, Machine
from bayplan.embedded.nodes.machines import sold_as
from bayplan.embedded.nodes.objects import (
    LEASE_NAMESPACE,
    condition_status,
    conditions,
    lease_object,
    node_object,
    with_conditions,
)
from bayplan.kube.times import micro_time

READY_SECONDS = 2.0
"""From registration to readiness: the network plugin and the like."""


class Registration(Controller[str]):
    """Keyed by node name."""

    name = "kubelet"
    storages = (NODES,)

    def __init__(self, stage: Stage, fleet: Fleet) -> None:
        self._stage = stage
        self._fleet = fleet

    def notice(self, change: Change) -> Iterable[str]:
        """Nodes by their names."""
        return (change.entry.key.name,)

    def decide(self, key: str) -> Plan:
        """Register, report, or clean up."""
        node = self._stage.view.get(NODES, "", key)
        machine = self._fleet.find(key)
        if machine is None:
            return _clean_up(key, node)
        if not machine.up:
            return []
        if node is None:
            return self._register(machine)
        machine.registered = True
        return self._report(machine, node) + self._ensure_lease(key, node)

    def _register(self, machine: Machine) -> Plan:
        if machine.registered:
            return []
        return [Create(NODES, node_object(machine.instance, self._stage.now()))]

    def _report(self, machine: Machine, node: JsonObject) -> Plan:
        status = condition_status(node, "Ready")
        if status == "True":
            return []
        left = moment(node["metadata"]["creationTimestamp"]) + READY_SECONDS
        left -= self._stage.seconds()
        if left > 0:
            return [RequeueAfter(left)]
        now, key = self._stage.now(), Key(NODES, "", machine.name)

        def ready(obj: JsonObject) -> JsonObject:
            return with_conditions(obj, conditions(now, ready=True))

        said = f"Node {machine.name} status is now: NodeReady"
        return [Update(key, ready, "status"), Tell(key, "NodeReady", said, source="kubelet")]

    def _ensure_lease(self, name: str, node: JsonObject) -> Plan:
        if self._stage.view.store.get(Key(LEASES, LEASE_NAMESPACE, name)) is not None:
            return []
        renewed = micro_time(self._stage.clock.now())
        return [Create(LEASES, lease_object(name, node["metadata"]["uid"], renewed))]


def _clean_up(name: str, node: JsonObject | None) -> Plan:
    """A cloud's node goes when its machine is gone; a node that somebody made by hand stays."""
    sold = None if node is None else sold_as((node.get("spec") or {}).get("providerID") or "")
    if node is None or sold is None or sold[1] != name:
        return []
    return [Delete(Key(NODES, "", name), node["metadata"]["uid"])]
