"""The controller interface: its input, its decisions and the actions that it returns.

Every simulated component is a `Controller`. It gets a `ControllerContext`: the view of the cluster,
the clock, random numbers and the active faults. `notice` maps a change to keys; `decide` is called
for one key at a time and returns a complete `Plan`: the actions to carry out now, as values that
only the sink executes, and when to requeue the key even if nothing changes. A new plan replaces
an earlier `RequeueAfter` of the key.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from random import Random
from typing import Generic, Literal, TypeAlias, TypeVar

from bayplan.base.clock import Clock
from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.store.entry import ObjectKey
from bayplan.embedded.apiserver.store.watchcache import WatchCacheEvent
from bayplan.embedded.control.faults import FaultBoard
from bayplan.embedded.control.view import StoreView
from bayplan.kube.times import timestamp

K = TypeVar("K", bound=Hashable)


@dataclass(slots=True)
class ControllerContext:
    """The dependencies of controllers."""

    view: StoreView
    clock: Clock
    rng: Random
    faults: FaultBoard = field(default_factory=FaultBoard)

    def seconds(self) -> float:
        """Return the time as seconds since the epoch."""
        return self.clock.now().timestamp()

    def now(self) -> str:
        """Return the time as objects store it."""
        return timestamp(self.clock.now())

    def about(self, seconds: float, spread: float = 0.2) -> float:
        """Return a duration with a random variation."""
        return seconds * self.rng.uniform(1 - spread, 1 + spread)


Edit: TypeAlias = Callable[[JsonObject], JsonObject]
"""Returns the wanted object given the current one, which it may change in place."""


@dataclass(frozen=True, slots=True)
class Create:
    """Create an object; that it exists already is no failure."""

    storage: str
    object: JsonObject
    once: bool = False
    """Do not retry a creation that the server refused; only one without an answer."""


@dataclass(frozen=True, slots=True)
class Update:
    """Update an object, or one of its subresources; that it is gone is no failure."""

    key: ObjectKey
    edit: Edit
    subresource: Literal["", "status"] = ""


@dataclass(frozen=True, slots=True)
class Delete:
    """Delete an object if it is still the same one."""

    key: ObjectKey
    uid: str = ""
    grace_seconds: int | None = None


@dataclass(frozen=True, slots=True)
class Bind:
    """Bind a pod to a node."""

    key: ObjectKey
    node: str


@dataclass(frozen=True, slots=True)
class RecordEvent:
    """Record an event about an object."""

    about: ObjectKey
    reason: str
    message: str
    type: Literal["Normal", "Warning"] = "Normal"
    source: str = "bayplan"


@dataclass(frozen=True, slots=True)
class LocalAction:
    """Change state outside of the API: start a machine, fail an instance."""

    what: str
    act: Callable[[], None]


@dataclass(frozen=True, slots=True)
class RequeueAfter:
    """Requeue the same key after some seconds."""

    after: float


ControllerAction: TypeAlias = (
    Create | Update | Delete | Bind | RecordEvent | LocalAction | RequeueAfter
)
Plan: TypeAlias = list[ControllerAction]


class Controller(ABC, Generic[K]):
    """Decides about its keys; it neither writes nor waits."""

    name: str = ""
    storages: tuple[str, ...] = ()
    """The resources that it watches."""

    def notice(self, change: WatchCacheEvent) -> Iterable[K]:  # noqa: ARG002 - for those who listen
        """Return the keys that a change may concern."""
        return ()

    @abstractmethod
    def decide(self, key: K) -> Plan:
        """Return the plan for a key."""

    def first(self) -> Iterable[K]:
        """Return keys to process at the start, beyond those of existing objects."""
        return ()
