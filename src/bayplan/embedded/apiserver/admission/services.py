"""What a Service gets from the server: an address, and a port of every node where it asks for one.

What it has been given it keeps: a client that writes a service back without takes nothing away.
"""

from __future__ import annotations

import ipaddress

from bayplan.embedded.apiserver.errors import ApiError
from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.rest.backend import Backend
from bayplan.embedded.apiserver.rest.chain import AdmissionRequest

_NETWORK = ipaddress.IPv4Network("10.96.0.0/16")
_NODE_PORTS = range(30000, 32768)
_ON_NODES = ("NodePort", "LoadBalancer")


class ServiceAdmission:
    """Gives services their addresses and ports."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    def allocate(self, request: AdmissionRequest) -> None:
        """Fill in what is not said, with what the service has or with what is free."""
        spec: JsonObject = (request.object or {}).setdefault("spec", {})
        if request.old_object is not None:
            _keep(spec, request.old_object.get("spec") or {})
        if spec.get("type") == "ExternalName":
            return
        addresses = spec.get("clusterIPs") or []
        first = spec.get("clusterIP") or (addresses[0] if addresses else self._free_address())
        spec["clusterIP"] = first
        if not addresses:
            spec["clusterIPs"] = [first]
        if spec.get("type") in _ON_NODES and spec.get("allocateLoadBalancerNodePorts", True):
            self._give_node_ports(spec)

    def _free_address(self) -> str:
        services = self._backend.store.list("services")
        taken = {entry.fields.get("spec.clusterIP") for entry in services}
        addresses = _NETWORK.num_addresses - 2
        start = self._backend.rng.randrange(addresses)
        for offset in range(addresses):
            address = str(_NETWORK[1 + (start + offset) % addresses])
            if address not in taken:
                return address
        raise ApiError(507, "InsufficientStorage", "no service address is free")

    def _give_node_ports(self, spec: JsonObject) -> None:
        without = [port for port in spec.get("ports") or () if not port.get("nodePort")]
        if not without:
            return
        taken = {port.get("nodePort") for port in spec["ports"]} | self._node_ports()
        free = [number for number in _NODE_PORTS if number not in taken]
        if len(free) < len(without):
            raise ApiError(507, "InsufficientStorage", "no node port is free")
        for port, number in zip(without, self._backend.rng.sample(free, len(without)), strict=True):
            port["nodePort"] = number

    def _node_ports(self) -> set[int]:
        specs = (entry.object().get("spec") or {} for entry in self._backend.store.list("services"))
        return {port.get("nodePort") for spec in specs for port in spec.get("ports") or ()}


def _keep(spec: JsonObject, before: JsonObject) -> None:
    if "ExternalName" in (spec.get("type"), before.get("type")):
        return
    for name in ("clusterIP", "clusterIPs"):
        if not spec.get(name) and before.get(name):
            spec[name] = before[name]
    if spec.get("type") in _ON_NODES:
        given = {_port_key(port): port.get("nodePort") for port in before.get("ports") or ()}
        for port in spec.get("ports") or ():
            if not port.get("nodePort") and given.get(_port_key(port)):
                port["nodePort"] = given[_port_key(port)]


def _port_key(port: JsonObject) -> tuple[object, object]:
    return port.get("protocol"), port.get("port")
