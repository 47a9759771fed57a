"""What a client asks for, once HTTP is taken off: who, which object, and with which options."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.kinds.model import Kind
from bayplan.embedded.apiserver.store.entry import Key


@dataclass(frozen=True, slots=True)
class User:
    """Who asks."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: dict[str, list[str]] = field(default_factory=dict)


ADMIN = User("system:admin", ("system:masters", "system:authenticated"))
"""The server itself, and whoever holds the credentials that it writes."""


def _anybody_may() -> None:
    """Nothing to refuse."""


@dataclass(frozen=True, slots=True)
class Call:
    """One request about one resource; what is learned on its way makes another one."""

    user: User
    kind: Kind
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    dry_run: bool = False
    field_manager: str = ""
    field_validation: str = "Warn"
    force: bool = False
    client: str = ""
    """The program that asks; it manages the fields that it sets without naming a manager."""
    patching: bool = False
    strategic: JsonObject | None = None
    """The patch, if it is a strategic merge patch: complaints about its outcome show it."""
    repeated: tuple[str, ...] = ()
    """What a patch says twice, to be complained of with what it names in vain."""
    applied: bool = False
    """Whether this is a server-side apply, which keeps `managedFields` itself."""
    warnings: list[str] = field(default_factory=list)
    """What the client is to be told: the one thing that a request collects."""
    may_create: Callable[[], None] = _anybody_may
    """Refuses if the user may not create; asked when an update or an apply would."""

    @property
    def key(self) -> Key:
        """Where the object that this is about stands."""
        return Key(self.kind.storage, self.namespace, self.name)

    def warn(self, text: str) -> None:
        """Tell the client something that does not stop the request."""
        if text not in self.warnings:
            self.warnings.append(text)


@dataclass(frozen=True, slots=True)
class DeleteOptions:
    """How to delete."""

    grace_seconds: int | None = None
    propagation: str = ""
    uid: str = ""
    resource_version: str = ""
    dry_run: bool = False
