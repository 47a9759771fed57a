"""A transport that sends in one go what is written in one turn of the event loop.

An answer is written as a head and a body; sent apart, each would be a TLS record, a system call and
often a packet of its own, which costs more than everything else about a small answer. For the same
reason answers to requests that came together go together, unless one of them takes its time.

It is also the one door through which answers leave, so it is here that what they tell of is put on
file first: whatever was written up to then is committed before anything is sent.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from bayplan.embedded.apiserver.store.database import StoreError

_WORTH_JOINING = 256 * 1024
"""More than this is not copied once more only to save a system call."""
PATIENCE = 32
"""Turns of the event loop for which answers wait for those that follow them."""


class CoalescingTransport(asyncio.Transport):
    """Collects writes and hands them on once, at the end of the turn.

    `commit` puts on file what answers may tell of; if it fails nothing is sent any more. `more`
    says whether other requests of the client wait for their answers.
    """

    def __init__(
        self,
        transport: asyncio.Transport,
        loop: asyncio.AbstractEventLoop,
        commit: Callable[[], None],
        more: Callable[[], bool] = lambda: False,
    ) -> None:
        super().__init__()
        self._transport = transport
        self._loop = loop
        self._commit = commit
        self._more = more
        self._waited = 0
        self._pending: list[bytes] = []
        self._size = 0

    def write(self, data: bytes | bytearray | memoryview[Any]) -> None:
        """Send this soon; at once if it is much, so that a slow reader is noticed."""
        if not self._pending:
            self._loop.call_soon(self._end_of_turn)
        self._pending.append(bytes(data))
        self._size += len(data)
        if self._size > _WORTH_JOINING:
            self.flush()

    def _end_of_turn(self) -> None:
        if self._more() and self._waited < PATIENCE and not self._transport.is_closing():
            self._waited += 1
            self._loop.call_soon(self._end_of_turn)
        else:
            self._waited = 0
            self.flush()

    def flush(self) -> None:
        """Send what was written."""
        pending, self._pending = self._pending, []
        size, self._size = self._size, 0
        if not pending or self._transport.is_closing():
            return
        try:
            self._commit()
        except StoreError:
            self._transport.abort()
            return
        if size <= _WORTH_JOINING:
            pending = [b"".join(pending)]
        for part in pending:
            self._transport.write(part)

    def close(self) -> None:
        """Send what was written, then close."""
        self.flush()
        self._transport.close()

    def abort(self) -> None:
        """Close at once."""
        self._pending.clear()
        self._size = 0
        self._transport.abort()

    def is_closing(self) -> bool:
        """Whether it is closed, or about to be."""
        return self._transport.is_closing()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """What is known about the connection."""
        return self._transport.get_extra_info(name, default)

    def pause_reading(self) -> None:
        """Let the client wait."""
        self._transport.pause_reading()

    def resume_reading(self) -> None:
        """Let the client go on."""
        self._transport.resume_reading()
