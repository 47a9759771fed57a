"""What a client asks for, once HTTP is taken off: who, which object, and with which options."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import msgspec

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


class Warnings:
    """What a client is told beside its answer: each thing once, and not without end.

    When there is too much of it, each text is cut short, and those that come then are not told.
    """

    __slots__ = ("_longest", "_texts", "_written")

    def __init__(self) -> None:
        self._texts: dict[str, None] = {}
        self._written = 0
        self._longest = _WARNED_LETTERS

    def add(self, text: str) -> None:
        """Tell one thing more, if there is still room."""
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


def _anybody_may() -> None:
    """Nothing to refuse."""


class Call(msgspec.Struct, frozen=True):
    """One request about one resource; what is learned on its way makes another one.

    Which happens for every request: hence a kind of class that is quickly copied.
    """

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
    warnings: Warnings = msgspec.field(default_factory=Warnings)
    """What the client is to be told: the one thing that a request collects."""
    may_create: Callable[[], None] = _anybody_may
    """Refuses if the user may not create; asked when an update or an apply would."""

    @property
    def key(self) -> Key:
        """Where the object that this is about stands."""
        return Key(self.kind.storage, self.namespace, self.name)

    def warn(self, text: str) -> None:
        """Tell the client something that does not stop the request."""
        self.warnings.add(text)


@dataclass(frozen=True, slots=True)
class DeleteOptions:
    """How to delete."""

    grace_seconds: int | None = None
    propagation: str = ""
    uid: str = ""
    resource_version: str = ""
    dry_run: bool = False
