"""Objects live in namespaces that exist and are not about to go."""

from __future__ import annotations

from bayplan.embedded.apiserver.errors import ApiError, forbidden, not_found
from bayplan.embedded.apiserver.request import Call
from bayplan.embedded.apiserver.rest.backend import Backend
from bayplan.embedded.apiserver.store.entry import Key


def require_namespace(backend: Backend, call: Call) -> None:
    """Refuse to create in a namespace that is absent or terminating."""
    if not call.kind.namespaced:
        return
    namespace = backend.store.get(Key("namespaces", "", call.namespace))
    if namespace is None:
        raise not_found("", "namespaces", call.namespace)
    if namespace.deleting:
        raise _terminating(call)


def _terminating(call: Call) -> ApiError:
    kind, namespace = call.kind, call.namespace
    why = f"unable to create new content in namespace {namespace} because it is being terminated"
    error = forbidden(kind.group, kind.plural, call.name, why)
    cause = {
        "reason": "NamespaceTerminating",
        "message": f"namespace {namespace} is being terminated",
        "field": "metadata.namespace",
    }
    (error.details or {})["causes"] = [cause]
    return error
