"""Records a cluster: every change that informers deliver, into a file.

    recorder = ClusterRecorder(lambda clock: RecordingWriter(path, name="prod", start=clock.now()))
    await recorder.lead(client)                     # until it is cancelled

`lead` is a daemon's main function: it works over HTTPS, and in a lab in virtual time. Kinds that
are not served, not allowed or cannot be listed are left out and reported; they are recorded once
they can be listed.
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
from bayplan.observe.kinds import (
    OBSERVED,
    STATUS_RESOURCE,
    WORKLOAD_KINDS,
    autoscaler_status,
    selection_of,
)
from bayplan.recordings import RecordingFullError, RecordingWriter, identity_of
from bayplan.recordings.privacy import scrub

FLUSH_SECONDS = 1.0
SYNC_TIMEOUT = 30.0
"""Seconds to wait for the first lists; kinds that are listed later are recorded from then on."""
SYNC_EVERY = 10
"""Every how many flushes the file is synced to disk."""
OpenWriter = Callable[[Clock], RecordingWriter]
ReportMessage = Callable[[str], None]


class ClusterRecorder:
    """Records a cluster's changes."""

    def __init__(
        self,
        open_writer: OpenWriter,
        *,
        report: ReportMessage = lambda _: None,
        flush_seconds: float = FLUSH_SECONDS,
        sync_timeout: float = SYNC_TIMEOUT,
    ) -> None:
        self._open_writer = open_writer
        self._report = report
        self._flush_seconds = flush_seconds
        self._sync_timeout = sync_timeout
        self.has_started = False
        """Whether the file has been created."""
        self.changes = 0
        """How many changes have been recorded."""

    async def lead(self, client: Client, seconds: float | None = None) -> None:
        """Record until cancelled, or for `seconds` from when the informers have synced.

        RecordingFullError when the file has reached its maximum size, OSError if it cannot be
        written.
        """
        try:
            async with Informers(client) as informers:
                followed = _recorded_informers(informers)
                await self._wait_for(followed, client.clock)
                await self._record(followed, client.clock, seconds)
        except ExceptionGroup as errors:  # an informer's handler could not write a change
            raise errors.exceptions[0] from None

    async def _wait_for(self, followed: list[Informer[KubeObject]], clock: Clock) -> None:
        waits = [asyncio.ensure_future(one.answered.wait()) for one in followed]
        pause = asyncio.ensure_future(clock.sleep(self._sync_timeout))
        answered = asyncio.gather(*waits)
        try:
            await asyncio.wait((answered, pause), return_when=asyncio.FIRST_COMPLETED)
        finally:
            answered.cancel()
            pause.cancel()
            await asyncio.gather(answered, pause, return_exceptions=True)
        for informer in followed:
            if not informer.synced.is_set() and not isinstance(informer.refusal, NotFoundError):
                self._report(f"{informer.resource}: {_reason_not_recorded(informer)}")

    async def _record(
        self, followed: list[Informer[KubeObject]], clock: Clock, seconds: float | None
    ) -> None:
        began, writer = clock.monotonic(), self._open_writer(clock)
        end = began + (inf if seconds is None else seconds)
        self.has_started = True
        is_initial = True  # objects of the first lists exist from the beginning
        try:
            for informer in followed:
                informer.on_change(
                    self._handler(writer, lambda: 0.0 if is_initial else clock.monotonic() - began)
                )
            is_initial = False
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

    def _handler(
        self, writer: RecordingWriter, now: Callable[[], float]
    ) -> Callable[[Change[KubeObject]], None]:
        def note(change: Change[KubeObject]) -> None:
            obj = change.object
            if change.type == "deleted":
                self.changes += writer.record_deletion(now(), identity_of(obj))
            else:
                if isinstance(obj, KubeObject):
                    scrub(obj)  # the informers are this recorder's own
                self.changes += writer.record(now(), obj)

        return note


def _reason_not_recorded(informer: Informer[KubeObject]) -> str:
    if isinstance(informer.refusal, ForbiddenError):
        return f"not recorded: {informer.refusal}"
    return f"not recorded until it can be listed: {informer.last_error or 'no answer yet'}"


def _recorded_informers(informers: Informers) -> list[Informer[KubeObject]]:
    """Return the informers of every recorded kind; finished pods count as deleted."""
    found: list[Informer[KubeObject]] = [
        informers.of(kind, selection_of(kind)) for kind in (*OBSERVED, *WORKLOAD_KINDS)
    ]
    events: Informer[Event] = informers.of(EVENTS)
    status: Informer[Untyped] = informers.of(STATUS_RESOURCE, autoscaler_status())
    return [*found, events, status]  # type: ignore[list-item] # a writer takes both
