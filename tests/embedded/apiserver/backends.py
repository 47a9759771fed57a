"""A server's inside without HTTP, for tests that only ask what a write does."""

from __future__ import annotations

from random import Random

from bayplan.base.clock import Clock, WallClock
from bayplan.embedded.apiserver.admission.builtin import BuiltinAdmission
from bayplan.embedded.apiserver.kinds.catalog import Catalog, CatalogFields
from bayplan.embedded.apiserver.kinds.model import ServedKind
from bayplan.embedded.apiserver.request import ADMIN, Call
from bayplan.embedded.apiserver.rest.backend import Backend
from bayplan.embedded.apiserver.seed import seed
from bayplan.embedded.apiserver.store.database import Database
from bayplan.embedded.apiserver.store.store import ApiObjectStore


async def new_backend(clock: Clock | None = None) -> Backend:
    """A fresh cluster in memory."""
    catalog = Catalog()
    store = ApiObjectStore(Database(None), CatalogFields(catalog))
    backend = Backend(store, catalog, clock or WallClock(), Random(7))
    backend.admission.mutating.append(BuiltinAdmission(backend).step())
    await seed(backend)
    return backend


def kind_of(backend: Backend, resource: str) -> ServedKind:
    """A served kind by its plural, such as `pods` or `deployments.apps`."""
    kind = backend.catalog.stored(resource)
    assert kind is not None
    return kind


def call_of(backend: Backend, resource: str, name: str = "", subresource: str = "") -> Call:
    """A request by the administrator, in the default namespace."""
    kind = kind_of(backend, resource)
    return Call(ADMIN, kind, "default" if kind.namespaced else "", name, subresource)
