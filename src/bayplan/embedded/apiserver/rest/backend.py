"""What every part of the REST layer works with: the store, the kinds, the time, the admission
chain."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random, SystemRandom

from bayplan.base.clock import Clock
from bayplan.embedded.apiserver.errors import not_found
from bayplan.embedded.apiserver.kinds.catalog import Catalog
from bayplan.embedded.apiserver.request import Call
from bayplan.embedded.apiserver.rest.chain import AdmissionChain
from bayplan.embedded.apiserver.rest.templates import Templates
from bayplan.embedded.apiserver.store.entry import Entry
from bayplan.embedded.apiserver.store.store import Store
from bayplan.kube.times import timestamp


@dataclass(slots=True)
class Backend:
    """The parts that requests are carried out with."""

    store: Store
    catalog: Catalog
    clock: Clock
    rng: Random = field(default_factory=SystemRandom)
    admission: AdmissionChain = field(default_factory=AdmissionChain)
    templates: Templates = field(default_factory=Templates)
    allow_privileged: bool = False
    """Whether containers may be privileged."""

    def now(self) -> str:
        """The time as objects carry it."""
        return timestamp(self.clock.now())

    def require(self, call: Call) -> Entry:
        """The object that a call is about; 404 if it is not there."""
        entry = self.store.get(call.key)
        if entry is None:
            raise not_found(call.kind.group, call.kind.plural, call.name)
        return entry
