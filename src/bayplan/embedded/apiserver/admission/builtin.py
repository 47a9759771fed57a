"""The admission steps that every server has: what an object gets from other objects.

They need the store, which is why they are not part of a kind's strategy.
"""

from __future__ import annotations

from collections.abc import Callable

from bayplan.embedded.apiserver.admission.pods import PRIORITY_CLASSES, PodAdmission
from bayplan.embedded.apiserver.admission.services import ServiceAdmission
from bayplan.embedded.apiserver.admission.storage import StorageAdmission
from bayplan.embedded.apiserver.errors import forbidden
from bayplan.embedded.apiserver.rest.backend import Backend
from bayplan.embedded.apiserver.rest.chain import AdmissionRequest, Step

_PROTECTED = ("default", "kube-system", "kube-public")

Rule = Callable[[AdmissionRequest], None]


class BuiltinAdmission:
    """The built-in rules of one server."""

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

    def step(self) -> Step:
        """The rules as one mutating step of the chain."""

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
        """What must hold for the final object."""
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
        why = "this namespace may not be deleted"
        raise forbidden(call.kind.group, call.kind.plural, call.name, why)
