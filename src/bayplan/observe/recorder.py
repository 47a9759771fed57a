"""Recording a cluster: every change of it, as informers tell it, into a file.

    recorder = Recorder(lambda clock: RecordingWriter(path, name="prod", start=clock.now()))
    await recorder.lead(client)                     # until it is cancelled

`lead` is a daemon's: it works over HTTPS, and in a lab in virtual time. Kinds that are not served,
or not for this client, are left out and told; if they are granted later they are recorded then.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable

from bayplan.client import Change, Client, Informer, Informers, Untyped
from bayplan.client.errors import ForbiddenError
from bayplan.client.resources import EVENTS
from bayplan.kube.clock import Clock
from bayplan.kube.events import Event
from bayplan.kube.meta import KubeObject
from bayplan.kube.sharing import scrub
from bayplan.observe.kinds import ALSO_SHOWN, OBSERVED, STATUSES, status_alone, which
from bayplan.recordings import RecordingFullError, RecordingWriter, identity_of

FLUSH_SECONDS = 1.0
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
    ) -> None:
        self._opened = opened
        self._tell = tell
        self._flush_seconds = flush_seconds
        self.changes = 0
        """How many have been recorded."""

    async def lead(self, client: Client, seconds: float | None = None) -> None:
        """Record until cancelled, or for so long from the moment when the cluster is known.

        RecordingFullError when the file is as large as it may be.
        """
        clock = client.clock
        async with Informers(client) as informers:
            followed = _all_of(informers)
            for informer in followed:
                await informer.answered.wait()
                if isinstance(informer.refusal, ForbiddenError):
                    self._tell(f"{informer.resource}: not recorded: {informer.refusal}")
            began, writer = clock.monotonic(), self._opened(clock)
            here = True  # what is there at first is there from the beginning
            try:
                for informer in followed:
                    informer.on_change(
                        self._noting(writer, lambda: 0.0 if here else clock.monotonic() - began)
                    )
                here = False
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(seconds):
                        await self._flush(writer, clock)
            finally:
                with contextlib.suppress(RecordingFullError):
                    writer.mark(clock.monotonic() - began)
                    writer.close()

    async def _flush(self, writer: RecordingWriter, clock: Clock) -> None:
        flushes = 0
        while True:
            writer.flush(sync=flushes % SYNC_EVERY == 0)
            flushes += 1
            await clock.sleep(self._flush_seconds)

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


def _all_of(informers: Informers) -> list[Informer[KubeObject]]:
    """Every kind that is recorded; pods that have ended are told as gone."""
    found: list[Informer[KubeObject]] = [
        informers.of(kind, which(kind)) for kind in (*OBSERVED, *ALSO_SHOWN)
    ]
    events: Informer[Event] = informers.of(EVENTS)
    status: Informer[Untyped] = informers.of(STATUSES, status_alone())
    return [*found, events, status]  # type: ignore[list-item] # a writer takes both
