"""The interface of a controller: which keys a change concerns, and what to do about a key."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable
from typing import Generic, TypeVar

from bayplan.embedded.apiserver.store.journal import Change
from bayplan.embedded.control.steps import Plan

K = TypeVar("K", bound=Hashable)


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
