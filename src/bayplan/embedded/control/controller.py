"""What a controller is: what it is given, what it is asked, and what it answers.

Every simulated part is a `Controller`. It is given a `Stage`: the view of the cluster, the time,
the dice and the faults. It says which keys a change concerns, and is asked about one key at a time.
Its answer is a `Plan`, always in full: what to write now, as values that only the sink carries out,
and when to be asked again even if nothing changes. An earlier
`RequeueAfter` for the key is forgotten.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from random import Random
from typing import Generic, Literal, TypeAlias, TypeVar

from bayplan.base.clock import Clock
from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.store.entry import Key
from bayplan.embedded.apiserver.store.watchcache import Change
from bayplan.embedded.control.faults import FaultBoard
from bayplan.embedded.control.view import View
from bayplan.kube.times import timestamp

K = TypeVar("K", bound=Hashable)


@dataclass(slots=True)
class Stage:
    """The surroundings of controllers."""

    view: View
    clock: Clock
    rng: Random
    faults: FaultBoard = field(default_factory=FaultBoard)

    def seconds(self) -> float:
        """The time as seconds since the epoch."""
        return self.clock.now().timestamp()

    def now(self) -> str:
        """The time as objects carry it."""
        return timestamp(self.clock.now())

    def about(self, seconds: float, spread: float = 0.2) -> float:
        """A duration that varies a little from case to case."""
        return seconds * self.rng.uniform(1 - spread, 1 + spread)


Edit: TypeAlias = Callable[[JsonObject], JsonObject]
"""Makes the wanted object out of the present one, which it may change in place."""


@dataclass(frozen=True, slots=True)
class Create:
    """Make an object; that it exists already is no failure."""

    storage: str
    object: JsonObject
    once: bool = False
    """A server's no is taken for an answer; only one that could not answer is asked again."""


@dataclass(frozen=True, slots=True)
class Update:
    """Edit an object, or one of its subresources; that it is gone is no failure."""

    key: Key
    edit: Edit
    subresource: Literal["", "status"] = ""


@dataclass(frozen=True, slots=True)
class Delete:
    """Delete an object if it is still the same one."""

    key: Key
    uid: str = ""
    grace_seconds: int | None = None


@dataclass(frozen=True, slots=True)
class Bind:
    """Give a pod to a node."""

    key: Key
    node: str


@dataclass(frozen=True, slots=True)
class Tell:
    """Record an event about an object."""

    about: Key
    reason: str
    message: str
    type: Literal["Normal", "Warning"] = "Normal"
    source: str = "bayplan"


@dataclass(frozen=True, slots=True)
class Do:
    """Change what is no object of the API: switch a machine on, let a purchase fail."""

    what: str
    act: Callable[[], None]


@dataclass(frozen=True, slots=True)
class RequeueAfter:
    """Ask about the same key again after some seconds."""

    after: float


Step: TypeAlias = Create | Update | Delete | Bind | Tell | Do | RequeueAfter
Plan: TypeAlias = list[Step]


class Controller(ABC, Generic[K]):
    """Decides about keys of its own choosing; it neither writes nor waits."""

    name: str = ""
    storages: tuple[str, ...] = ()
    """The resources whose changes it wants to hear of."""

    def notice(self, change: Change) -> Iterable[K]:  # noqa: ARG002 - for those who listen
        """The keys that a change of one of its storages may matter to."""
        return ()

    @abstractmethod
    def decide(self, key: K) -> Plan:
        """What to do about a key now."""

    def first(self) -> Iterable[K]:
        """Keys to look at when the simulation starts, beyond those of existing objects."""
        return ()
