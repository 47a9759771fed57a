"""What the server asks of what it shows: a cluster that goes on, stands still, or is over."""

from __future__ import annotations

from typing import Protocol

from bayplan.ui.encoding import Encoded
from bayplan.ui.journal import Listener


class NotOfferedError(Exception):
    """A question that only recordings answer, or that they do not."""


class BusyError(Exception):
    """Too many ask at once."""


class Backend(Protocol):
    """The page's data."""

    async def state(self, at: float | None) -> Encoded:
        """The whole state, of a recording at a moment (seconds from its beginning)."""
        ...

    def listen(self, after: int) -> Listener | None:
        """Changes as they come; None if those after that one are not known any more."""
        ...

    async def changes(self, after: int, most: int) -> Encoded:
        """The next changes of a recording."""
        ...

    async def timeline(self) -> Encoded:
        """The marks and figures of a recording."""
        ...

    async def explain(self, pod: str, after: int | None) -> bytes:
        """Why a pod is where it is, of a recording after that change; LookupError if there is
        none.
        """
        ...
