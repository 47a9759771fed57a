"""What a controller decided, as values: a plan is a list of steps, and only the sink carries them
out.

A controller is asked about one key at a time and always answers in full: what to write now, and
when to be asked again even if nothing changes. An earlier `Again` for the same key is forgotten.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.store.entry import Key

Edit: TypeAlias = Callable[[JsonObject], JsonObject]
"""Makes the wanted object out of the present one, which it may change in place."""


@dataclass(frozen=True, slots=True)
class Create:
    """Make an object; that it exists already is no failure."""

    storage: str
    object: JsonObject


@dataclass(frozen=True, slots=True)
class Change:
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
class Again:
    """Ask about the same key again after some seconds."""

    after: float


Step: TypeAlias = Create | Change | Delete | Bind | Tell | Do | Again
Plan: TypeAlias = list[Step]
