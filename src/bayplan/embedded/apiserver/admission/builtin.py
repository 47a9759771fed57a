"""The admission steps that every server has: what a pod or a claim gets from other objects.

They need the store, which is why they are not part of a kind's strategy.
"""

from __future__ import annotations

from collections.abc import Callable

from bayplan.embedded.apiserver.admission.services import ServiceAdmission
from bayplan.embedded.apiserver.admission.storage import StorageAdmission
from bayplan.embedded.apiserver.errors import ApiError, forbidden
from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.rest.backend import Backend
from bayplan.embedded.apiserver.rest.chain import AdmissionRequest, Step
from bayplan.embedded.apiserver.store.entry import Key

PRIORITY_CLASSES = "priorityclasses.scheduling.k8s.io"
RUNTIME_CLASSES = "runtimeclasses.node.k8s.io"
_PROTECTED = ("default", "kube-system", "kube-public")
_UNWELL = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")

Rule = Callable[[AdmissionRequest], None]


class BuiltinAdmission:
    """The built-in rules of one server."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._default_class: tuple[int, JsonObject] = (-1, {})
        storage, services = StorageAdmission(backend), ServiceAdmission(backend)
        self.validate = storage.validate
        self._on_create: dict[str, tuple[Rule, ...]] = {
            "pods": (self._priority, self._runtime_class, self._tolerations, self._account),
            "persistentvolumeclaims": (storage.default_class, storage.protect),
            "persistentvolumes": (storage.protect,),
            "services": (services.allocate,),
        }
        self._on_update: dict[str, tuple[Rule, ...]] = {"services": (services.allocate,)}

    def step(self) -> Step:
        """The rules as one mutating step of the chain."""

        async def admit(request: AdmissionRequest) -> None:
            if request.operation == "DELETE":
                _protect_namespaces(request)
            elif not request.call.subresource:
                rules = self._on_create if request.operation == "CREATE" else self._on_update
                for rule in rules.get(request.call.kind.storage, ()):
                    rule(request)

        return admit

    def _priority(self, request: AdmissionRequest) -> None:
        spec = _spec(request)
        name = spec.get("priorityClassName") or ""
        found = self._priority_class(request, name) if name else self._default_priority()
        value = found.get("value") or 0
        if spec.get("priority") not in (None, value):
            raise _refuse(
                request,
                f"the integer value of priority ({spec['priority']}) must not be provided in pod "
                f"spec; priority admission controller computed {value} from the given "
                "PriorityClass name",
            )
        spec["priority"] = value
        if found.get("metadata") and not name:
            spec["priorityClassName"] = found["metadata"]["name"]
        spec.setdefault("preemptionPolicy", found.get("preemptionPolicy", "PreemptLowerPriority"))

    def _priority_class(self, request: AdmissionRequest, name: str) -> JsonObject:
        entry = self._backend.store.get(Key(PRIORITY_CLASSES, "", name))
        if entry is None:
            raise _refuse(request, f"no PriorityClass with name {name} was found")
        return entry.object()

    def _default_priority(self) -> JsonObject:
        """The class of pods that name none; looked up again only when a class has changed."""
        store = self._backend.store
        version = store.journal(PRIORITY_CLASSES).end
        if self._default_class[0] != version:
            classes = (entry.object() for entry in store.list(PRIORITY_CLASSES))
            defaults = [one for one in classes if one.get("globalDefault")]
            found = min(defaults, key=lambda one: one.get("value") or 0, default={})
            self._default_class = (version, found)
        return self._default_class[1]

    def _runtime_class(self, request: AdmissionRequest) -> None:
        spec = _spec(request)
        name = spec.get("runtimeClassName")
        if not name:
            return
        entry = self._backend.store.get(Key(RUNTIME_CLASSES, "", name))
        if entry is None:
            raise _refuse(request, f'pod rejected: RuntimeClass "{name}" not found')
        _apply_runtime_class(request, spec, entry.object())

    def _tolerations(self, request: AdmissionRequest) -> None:
        """A pod leaves a node that is unwell after five minutes, unless it says otherwise."""
        tolerations = _spec(request).setdefault("tolerations", [])
        for key in _UNWELL:
            if not any(_tolerates(one, key) for one in tolerations):
                tolerations.append(
                    {
                        "key": key,
                        "operator": "Exists",
                        "effect": "NoExecute",
                        "tolerationSeconds": 300,
                    }
                )

    def _account(self, request: AdmissionRequest) -> None:
        spec = _spec(request)
        name = spec.get("serviceAccountName") or spec.get("serviceAccount") or "default"
        spec["serviceAccountName"] = spec["serviceAccount"] = name


def _spec(request: AdmissionRequest) -> JsonObject:
    obj = request.object or {}
    if obj.get("spec") is None:
        obj["spec"] = {}
    spec: JsonObject = obj["spec"]
    return spec


def _refuse(request: AdmissionRequest, why: str) -> ApiError:
    kind = request.call.kind
    return forbidden(kind.group, kind.plural, request.call.name, why)


def _tolerates(toleration: JsonObject, key: str) -> bool:
    return toleration.get("key") in (None, "", key) and toleration.get("effect") in (
        None,
        "",
        "NoExecute",
    )


def _apply_runtime_class(request: AdmissionRequest, spec: JsonObject, found: JsonObject) -> None:
    overhead = (found.get("overhead") or {}).get("podFixed")
    if overhead:
        if spec.get("overhead") not in (None, overhead):
            raise _refuse(request, "pod rejected: Pod's Overhead doesn't match RuntimeClass's")
        spec["overhead"] = overhead
    scheduling = found.get("scheduling") or {}
    selector = spec.get("nodeSelector") or {}
    for key, value in (scheduling.get("nodeSelector") or {}).items():
        if selector.get(key, value) != value:
            raise _refuse(
                request, f"pod rejected: conflict: runtimeClass.scheduling.nodeSelector[{key}]"
            )
        selector[key] = value
    if selector:
        spec["nodeSelector"] = selector
    tolerations = spec.get("tolerations") or []
    spec["tolerations"] = tolerations + [
        one for one in scheduling.get("tolerations") or () if one not in tolerations
    ]


def _protect_namespaces(request: AdmissionRequest) -> None:
    call = request.call
    if call.kind.storage == "namespaces" and call.name in _PROTECTED:
        raise _refuse(request, "this namespace may not be deleted")
