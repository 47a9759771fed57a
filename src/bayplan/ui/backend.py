"""The interface between the server and a live cluster, a dump or a recording."""

from __future__ import annotations

from typing import Protocol

from bayplan.ui.changelog import ChangeListener
from bayplan.ui.encoder import Encoded


class NotAvailableError(Exception):
    """A request that is available only for recordings, or not for them."""


class BusyError(Exception):
    """Too many requests at the same time."""


class PageBackend(Protocol):
    """The data of the page."""

    async def state(self, at: float | None) -> Encoded:
        """Return the whole state; of a recording, at a time in seconds from its start."""
        ...

    def listen(self, after: int) -> ChangeListener | None:
        """Return a listener for new changes; None if those after `after` are no longer known."""
        ...

    async def changes(self, after: int, most: int) -> Encoded:
        """Return the next changes of a recording."""
        ...

    async def timeline(self) -> Encoded:
        """Return the timeline of a recording."""
        ...

    async def explain(self, pod: str, after: int | None) -> bytes:
        """Explain a pod, of a recording after that change; LookupError if it does not exist."""
        ...
