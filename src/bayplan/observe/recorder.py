"""Recording a cluster: every change of it, as informers tell it, into a file.

    recorder = Recorder(lambda clock: RecordingWriter(path, name="prod", start=clock.now()))
    await recorder.lead(client)                     # until it is cancelled

`lead` is a daemon's: it works over HTTPS, and in a lab in virtual time. Kinds that are not served,
or not for this client, or that the server cannot tell, are left out and told; once they can be read
they are recorded.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from math import inf

from bayplan.base.clock import Clock
from bayplan.client import Change, Client, Informer, Informers, Untyped
from bayplan.client.errors import ForbiddenError, NotFoundError
from bayplan.client.resources import EVENTS
from bayplan.kube.events import Event
from bayplan.kube.meta import KubeObject
from bayplan.observe.kinds import ALSO_SHOWN, OBSERVED, STATUSES, status_alone, which
from bayplan.recordings import RecordingFullError, RecordingWriter, identity_of
from bayplan.recordings.privacy import scrub

FLUSH_SECONDS = 1.0
PATIENCE = 30.0
"""Seconds for which the first answers are waited for; who is later is recorded from then on."""
SYNC_EVERY = 10
"""So many flushes from one that sees everything safe on the disk to the next."""
OpenWriter = Callable[[Clock], RecordingWriter]
Told = Callable[[str], None]


class Recorder:
    """Writes what happens in a cluster."""

    def __init__(
        self,
        opened: OpenWriter,
        *,
        tell: Told = lambda _: None,
        flush_seconds: float = FLUSH_SECONDS,
        patience: float = PATIENCE,
    ) -> None:
        self._opened = opened
        self._tell = tell
        self._flush_seconds = flush_seconds
        self._patience = patience
        self.has_begun = False
        """Whether there is a file."""
        self.changes = 0
        """How many have been recorded."""

    async def lead(self, client: Client, seconds: float | None = None) -> None:
        """Record until cancelled, or for so long from the moment when the cluster is known.

        RecordingFullError when the file is as large as it may be, OSError if it cannot be written.
        """
        try:
            async with Informers(client) as informers:
                followed = _all_of(informers)
                await self._wait_for(followed, client.clock)
                await self._record(followed, client.clock, seconds)
        except ExceptionGroup as errors:  # somebody who told a change could not have it written
            raise errors.exceptions[0] from None

    async def _wait_for(self, followed: list[Informer[KubeObject]], clock: Clock) -> None:
        waits = [asyncio.ensure_future(one.answered.wait()) for one in followed]
        pause = asyncio.ensure_future(clock.sleep(self._patience))
        everybody = asyncio.gather(*waits)
        try:
            await asyncio.wait((everybody, pause), return_when=asyncio.FIRST_COMPLETED)
        finally:
            everybody.cancel()
            pause.cancel()
            await asyncio.gather(everybody, pause, return_exceptions=True)
        for informer in followed:
            if not informer.synced.is_set() and not isinstance(informer.refusal, NotFoundError):
                self._tell(f"{informer.resource}: {_why_not(informer)}")

    async def _record(
        self, followed: list[Informer[KubeObject]], clock: Clock, seconds: float | None
    ) -> None:
        began, writer = clock.monotonic(), self._opened(clock)
        end = began + (inf if seconds is None else seconds)
        self.has_begun = True
        here = True  # what is there at first is there from the beginning
        try:
            for informer in followed:
                informer.on_change(
                    self._noting(writer, lambda: 0.0 if here else clock.monotonic() - began)
                )
            here = False
            await self._flush(writer, clock, end)
        finally:
            with contextlib.suppress(RecordingFullError), writer:
                writer.mark(clock.monotonic() - began)

    async def _flush(self, writer: RecordingWriter, clock: Clock, end: float) -> None:
        flushes = 0
        while (left := end - clock.monotonic()) > 0:
            writer.flush(sync=flushes % SYNC_EVERY == 0)
            flushes += 1
            await clock.sleep(min(self._flush_seconds, left))

    def _noting(
        self, writer: RecordingWriter, now: Callable[[], float]
    ) -> Callable[[Change[KubeObject]], None]:
        def note(change: Change[KubeObject]) -> None:
            obj = change.object
            if change.type == "deleted":
                self.changes += writer.gone(now(), identity_of(obj))
            else:
                if isinstance(obj, KubeObject):
                    scrub(obj)  # the informers are this recorder's own
                self.changes += writer.take(now(), obj)

        return note


def _why_not(informer: Informer[KubeObject]) -> str:
    if isinstance(informer.refusal, ForbiddenError):
        return f"not recorded: {informer.refusal}"
    return f"not recorded until it can be read: {informer.last_error or 'no answer yet'}"


def _all_of(informers: Informers) -> list[Informer[KubeObject]]:
    """Every kind that is recorded; pods that have ended are told as gone."""
    found: list[Informer[KubeObject]] = [
        informers.of(kind, which(kind)) for kind in (*OBSERVED, *ALSO_SHOWN)
    ]
    events: Informer[Event] = informers.of(EVENTS)
    status: Informer[Untyped] = informers.of(STATUSES, status_alone())
    return [*found, events, status]  # type: ignore[list-item] # a writer takes both
