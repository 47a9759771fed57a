"""Copies of objects that a provider follows: there once, or not to be had in time."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Protocol

from bayplan.client.errors import ClientError
from bayplan.nodegroups import UnavailableError

PATIENCE = 30.0
"""Seconds that a copy may take the first time."""


class Followed(Protocol):
    """An informer, of whatever kind."""

    synced: asyncio.Event
    last_error: ClientError | None


class Following:
    """Some informers."""

    def __init__(self, informers: Sequence[Followed]) -> None:
        self._informers = informers

    async def synced(self, what: str) -> None:
        """Wait for the first whole copy of each; UnavailableError if it does not come."""
        try:
            async with asyncio.timeout(PATIENCE):
                for one in self._informers:
                    await one.synced.wait()
        except TimeoutError:
            errors = (one.last_error for one in self._informers if one.last_error is not None)
            raise UnavailableError(f"{what} cannot be read: {next(errors, 'no answer')}") from None
