"""What claims and volumes get from the server, and which claims may grow."""

from __future__ import annotations

from fractions import Fraction

from bayplan.embedded.apiserver.errors import forbidden
from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.rest.backend import Backend
from bayplan.embedded.apiserver.rest.chain import AdmissionRequest
from bayplan.embedded.apiserver.store.entry import Entry, Key
from bayplan.kube import quantity

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
    """The rules about storage of one server."""

    def __init__(self, backend: Backend) -> None:
        self._store = backend.store

    def default_class(self, request: AdmissionRequest) -> None:
        """A claim that names no class gets the default one; of several, the newest."""
        claim = request.object or {}
        spec = claim.setdefault("spec", {})
        if spec.get("storageClassName") is not None or _OLD_CLASS in _annotations(claim):
            return
        defaults = [entry for entry in self._store.list(STORAGE_CLASSES) if _is_default(entry)]
        if defaults:
            spec["storageClassName"] = max(defaults, key=_created).key.name

    def protect(self, request: AdmissionRequest) -> None:
        """What is made stays, once deleted, until a controller finds that nobody needs it."""
        meta = (request.object or {})["metadata"]
        finalizer = _PROTECTION[request.call.kind.storage]
        if finalizer not in (meta.get("finalizers") or ()):
            meta["finalizers"] = [*(meta.get("finalizers") or ()), finalizer]

    async def validate(self, request: AdmissionRequest) -> None:
        """A claim may grow once it is bound, if its class allows that."""
        call, new, old = request.call, request.object, request.old_object
        if call.kind.storage != _CLAIMS or call.subresource or new is None or old is None:
            return
        if _size(new) <= _size(old):
            return
        if (old.get("status") or {}).get("phase") != "Bound":
            why = "Only bound persistent volume claims can be expanded"
        elif self._may_grow(new, old):
            return
        else:
            why = _NO_GROWTH
        raise forbidden(call.kind.group, call.kind.plural, call.name, why)

    def _may_grow(self, new: JsonObject, old: JsonObject) -> bool:
        name = _class_of(new)
        entry = self._store.get(Key(STORAGE_CLASSES, "", name)) if name else None
        same = name == _class_of(old)
        return same and entry is not None and bool(entry.object().get("allowVolumeExpansion"))


def _annotations(obj: JsonObject) -> JsonObject:
    return obj["metadata"].get("annotations") or {}


def _is_default(entry: Entry) -> bool:
    found = _annotations(entry.object())
    return any(found.get(name) == "true" for name in _DEFAULT)


def _created(entry: Entry) -> str:
    return str(entry.object()["metadata"]["creationTimestamp"])


def _class_of(claim: JsonObject) -> str:
    found = _annotations(claim).get(_OLD_CLASS)
    return str(found if found is not None else claim["spec"].get("storageClassName") or "")


def _size(claim: JsonObject) -> Fraction:
    resources = claim["spec"].get("resources") or {}
    return quantity.parse((resources.get("requests") or {}).get("storage") or "0")
