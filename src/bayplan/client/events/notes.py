"""Whoever is told what happens: a recorder, or in a dry run nobody."""

from __future__ import annotations

from typing import Protocol

from bayplan.client.resources import Untyped
from bayplan.kube.events import EventType
from bayplan.kube.meta import KubeObject


class Notes(Protocol):
    """Whoever writes events for users."""

    def note(
        self, about: KubeObject | Untyped, kind: EventType, reason: str, *, action: str, text: str
    ) -> None:
        """Have one written, without waiting for it."""
        ...

    async def run(self) -> None:
        """Write until cancelled."""
        ...

    async def drain(self) -> None:
        """Wait until everything noted so far is written."""
        ...


class NoEvents:
    """In place of a recorder: says nothing."""

    def note(
        self, about: KubeObject | Untyped, kind: EventType, reason: str, *, action: str, text: str
    ) -> None:
        """The status says it, too."""

    async def run(self) -> None:
        """There is nothing to send."""

    async def drain(self) -> None:
        """There is nothing to wait for."""
