"""A request without HTTP: the user, the object and the options."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import msgspec

from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.kinds.model import ServedKind
from bayplan.embedded.apiserver.store.entry import ObjectKey


@dataclass(frozen=True, slots=True)
class UserInfo:
    """An authenticated user."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: dict[str, list[str]] = field(default_factory=dict)


ADMIN = UserInfo("system:admin", ("system:masters", "system:authenticated"))
"""The server itself, and the holder of the credentials that it writes."""


class Warnings:
    """Warnings for the client: without duplicates, and limited in number and length.

    Above the limit each text is truncated, and further ones are dropped.
    """

    __slots__ = ("_longest", "_texts", "_written")

    def __init__(self) -> None:
        self._texts: dict[str, None] = {}
        self._written = 0
        self._longest = _WARNED_LETTERS

    def add(self, text: str) -> None:
        """Add a warning, unless the limit is reached."""
        if not text or text in self._texts or self._written >= _WARNED_LETTERS:
            return
        self._texts[text] = None
        self._written += min(len(text), self._longest)
        if self._written > _WARNED_LETTERS and self._longest > _CUT_LETTERS:
            self._longest = _CUT_LETTERS
            self._written = sum(len(one) for one in self)

    def __iter__(self) -> Iterator[str]:
        return (text[: self._longest] for text in self._texts)

    def __len__(self) -> int:
        return len(self._texts)


_WARNED_LETTERS = 4 * 1024
_CUT_LETTERS = 256


def _always_allowed() -> None:
    """Allow every creation."""


class Call(msgspec.Struct, frozen=True):
    """One request about one resource.

    It is immutable, and copied with changes several times per request: hence a class that copies
    fast.
    """

    user: UserInfo
    kind: ServedKind
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    dry_run: bool = False
    field_manager: str = ""
    field_validation: str = "Warn"
    force: bool = False
    client: str = ""
    """The client program; it is the field manager of the fields that it sets without naming one."""
    patching: bool = False
    strategic: JsonObject | None = None
    """The patch, if it is a strategic merge patch: errors about its result show it."""
    repeated: tuple[str, ...] = ()
    """Duplicate and unknown fields of a patch, for field validation."""
    applied: bool = False
    """Whether this is a server-side apply, which writes `managedFields` itself."""
    warnings: Warnings = msgspec.field(default_factory=Warnings)
    """Warnings collected for the client; the only mutable part of a call."""
    may_create: Callable[[], None] = _always_allowed
    """Raises 403 if the user may not create; called when an update or apply would create."""

    @property
    def key(self) -> ObjectKey:
        """Return the key of the object."""
        return ObjectKey(self.kind.storage, self.namespace, self.name)

    def warn(self, text: str) -> None:
        """Add a warning for the client."""
        self.warnings.add(text)


@dataclass(frozen=True, slots=True)
class DeletionOptions:
    """Options of a delete."""

    grace_seconds: int | None = None
    propagation: str = ""
    uid: str = ""
    resource_version: str = ""
    dry_run: bool = False
