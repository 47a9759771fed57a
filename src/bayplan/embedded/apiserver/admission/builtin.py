"""Built-in admission: fields of an object that come from other objects.

Values that were allocated once are kept: an update that omits them does not remove them.

These steps read the store, so they are not part of a kind's strategy.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable
from fractions import Fraction

from bayplan.embedded.apiserver.admission.pods import PRIORITY_CLASSES, PodAdmission
from bayplan.embedded.apiserver.errors import StatusError, forbidden
from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.rest.backend import AdmissionRequest, AdmissionStep, Backend
from bayplan.embedded.apiserver.store.entry import ObjectKey, StoreEntry
from bayplan.kube import quantity

_NETWORK = ipaddress.IPv4Network("10.96.0.0/16")
_NODE_PORTS = range(30000, 32768)
_ON_NODES = ("NodePort", "LoadBalancer")


class ServiceAdmission:
    """Allocates cluster IPs and node ports of services."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    def allocate(self, request: AdmissionRequest) -> None:
        """Set fields that are absent, from the old service or from free addresses and ports."""
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
        raise StatusError(507, "InsufficientStorage", "no free cluster IP")

    def _give_node_ports(self, spec: JsonObject) -> None:
        without = [port for port in spec.get("ports") or () if not port.get("nodePort")]
        if not without:
            return
        taken = {port.get("nodePort") for port in spec["ports"]} | self._node_ports()
        free = [number for number in _NODE_PORTS if number not in taken]
        if len(free) < len(without):
            raise StatusError(507, "InsufficientStorage", "no free node port")
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


STORAGE_CLASSES = "storageclasses.storage.k8s.io"
_DEFAULT = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)
_OLD_CLASS = "volume.beta.kubernetes.io/storage-class"
_CLAIMS = "persistentvolumeclaims"
_PROTECTION = {
    _CLAIMS: "kubernetes.io/pvc-protection",
    "persistentvolumes": "kubernetes.io/pv-protection",
}
_NO_GROWTH = (
    "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc "
    "must support resize"
)


class StorageAdmission:
    """Admission of storage objects."""

    def __init__(self, backend: Backend) -> None:
        self._store = backend.store

    def default_class(self, request: AdmissionRequest) -> None:
        """Set the default storage class of a claim without one; of several, the newest."""
        claim = request.object or {}
        spec = claim.setdefault("spec", {})
        if spec.get("storageClassName") is not None or _OLD_CLASS in _annotations(claim):
            return
        defaults = [entry for entry in self._store.list(STORAGE_CLASSES) if _is_default(entry)]
        if defaults:
            spec["storageClassName"] = max(defaults, key=_created).key.name

    def protect(self, request: AdmissionRequest) -> None:
        """Add the protection finalizer to a new claim or volume."""
        meta = (request.object or {})["metadata"]
        finalizer = _PROTECTION[request.call.kind.storage]
        if finalizer not in (meta.get("finalizers") or ()):
            meta["finalizers"] = [*(meta.get("finalizers") or ()), finalizer]

    async def validate(self, request: AdmissionRequest) -> None:
        """Refuse to grow a claim unless it is bound and its class allows expansion."""
        call, new, old = request.call, request.object, request.old_object
        if call.kind.storage != _CLAIMS or call.subresource or new is None or old is None:
            return
        if _size(new) <= _size(old):
            return
        if (old.get("status") or {}).get("phase") != "Bound":
            detail = "Only bound persistent volume claims can be expanded"
        elif self._may_grow(new, old):
            return
        else:
            detail = _NO_GROWTH
        raise forbidden(call.kind.group, call.kind.plural, call.name, detail)

    def _may_grow(self, new: JsonObject, old: JsonObject) -> bool:
        name = _class_of(new)
        entry = self._store.get(ObjectKey(STORAGE_CLASSES, "", name)) if name else None
        same = name == _class_of(old)
        return same and entry is not None and bool(entry.object().get("allowVolumeExpansion"))


def _annotations(obj: JsonObject) -> JsonObject:
    return obj["metadata"].get("annotations") or {}


def _is_default(entry: StoreEntry) -> bool:
    found = _annotations(entry.object())
    return any(found.get(name) == "true" for name in _DEFAULT)


def _created(entry: StoreEntry) -> str:
    return str(entry.object()["metadata"]["creationTimestamp"])


def _class_of(claim: JsonObject) -> str:
    found = _annotations(claim).get(_OLD_CLASS)
    return str(found if found is not None else claim["spec"].get("storageClassName") or "")


def _size(claim: JsonObject) -> Fraction:
    resources = claim["spec"].get("resources") or {}
    return quantity.parse((resources.get("requests") or {}).get("storage") or "0")


_PROTECTED = ("default", "kube-system", "kube-public")

Rule = Callable[[AdmissionRequest], None]


class BuiltinAdmission:
    """The built-in admission of one server."""

    def __init__(self, backend: Backend) -> None:
        self._storage = storage = StorageAdmission(backend)
        self._pods = PodAdmission(backend)
        services = ServiceAdmission(backend)
        self._on_create: dict[str, tuple[Rule, ...]] = {
            "pods": self._pods.on_create,
            "persistentvolumeclaims": (storage.default_class, storage.protect),
            "persistentvolumes": (storage.protect,),
            "services": (services.allocate,),
        }
        self._on_update: dict[str, tuple[Rule, ...]] = {
            "pods": self._pods.on_update,
            "services": (services.allocate,),
        }

    def step(self) -> AdmissionStep:
        """Return the built-in rules as one mutating step."""

        async def admit(request: AdmissionRequest) -> None:
            if request.operation == "DELETE":
                _protect_namespaces(request)
                return
            for rule in self._rules(request):
                rule(request)

        return admit

    def _rules(self, request: AdmissionRequest) -> tuple[Rule, ...]:
        call = request.call
        if call.subresource:
            bound = call.kind.storage == "pods" and call.subresource == "binding"
            return self._pods.on_binding if bound else ()
        rules = self._on_create if request.operation == "CREATE" else self._on_update
        return rules.get(call.kind.storage, ())

    async def validate(self, request: AdmissionRequest) -> None:
        """Run the built-in validating rules on the final object."""
        call = request.call
        if call.kind.storage == PRIORITY_CLASSES:
            self._pods.validate_class(request)
        elif call.kind.storage != "pods":
            await self._storage.validate(request)
        elif request.operation == "CREATE" and not call.subresource:
            self._pods.validate_new(request)
        elif request.operation == "UPDATE" and call.subresource == "resize":
            self._pods.validate_resize(request)


def _protect_namespaces(request: AdmissionRequest) -> None:
    call = request.call
    if call.kind.storage == "namespaces" and call.name in _PROTECTED:
        detail = "this namespace may not be deleted"
        raise forbidden(call.kind.group, call.kind.plural, call.name, detail)
