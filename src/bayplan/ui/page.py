"""The page of a live cluster or a dump: its state and its changes.

The picture is drawn in time slices, so that other tasks on the event loop can run; changes are
collected for a moment and sent as one numbered change. Causes of pending pods are computed in the
remaining time, and work that takes seconds (queues, the next plan, an explanation) runs in a
thread, on a copy of the cluster, at a limited rate.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from datetime import datetime
from typing import TypeVar

import msgspec

from bayplan.base.clock import Clock
from bayplan.base.garbage import freeze
from bayplan.base.timeslice import TimeSlice
from bayplan.fit import Snapshot
from bayplan.kube.pods import Pod
from bayplan.ui import encoder
from bayplan.ui.answers import FrozenCluster, PageAnswers
from bayplan.ui.backend import BusyError, NotAvailableError
from bayplan.ui.changelog import ChangeListener, PageChangeLog
from bayplan.ui.encoder import Encoded, PageSource
from bayplan.ui.extras import Extras
from bayplan.ui.picture.picture import Picture

log = logging.getLogger(__name__)
T = TypeVar("T")
COLLECT_SECONDS = 0.15
"""Seconds for which changes are collected."""
CAUSES_EVERY, CAUSES_FOR = 1.0, 0.2
"""How often the causes of pending pods are computed, and for how many seconds."""
REPORTS_EVERY, REPORTS_REST = 2.0, 8.0
"""How often queues and plans are computed, and the pause as a multiple of their duration."""
KEEP_STATE = 1.0
"""Seconds for which an encoded state is reused: changes continue from it."""
KEEP_COPY = 3.0
"""Seconds for which a copy of the cluster is reused for explanations."""
MAX_NOTES = 100
MAX_EXPLANATIONS = 4


class ClusterPage:
    """The page of one cluster."""

    def __init__(
        self,
        picture: Picture,
        source: PageSource,
        clock: Clock,
        answers: PageAnswers | None = None,
        *,
        moment: datetime | None = None,
    ) -> None:
        self.picture = picture
        self._moment = moment
        """The time of a dump; None for a live cluster."""
        self.source = source
        self.clock = clock
        # A page that reconnects to another server must not mistake it for the first one.
        self.change_log = PageChangeLog(start=int(clock.now().timestamp() * 1000))
        self.ready = asyncio.Event()
        """Set once there is a first picture."""
        self.extras = Extras(picture, self.mark_changed)
        self._answers = answers or PageAnswers()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="page")
        self._notes: list[str] = []
        self._notes_changed = False
        self._state: tuple[float, Encoded] | None = None
        self._encoding: asyncio.Task[Encoded] | None = None
        self._frozen: tuple[float, FrozenCluster, Snapshot] | None = None
        self._explaining = 0
        self._is_changed = True
        self._causes_due = 0.0

    # -- changes ----------------------------------------------------------------------------

    def mark_changed(self) -> None:
        """Mark that queues and plans may have changed."""
        self._is_changed = True

    def set_notes(self, notes: Iterable[str]) -> None:
        """Set the notes about data that could not be read."""
        found = list(notes)[:MAX_NOTES]
        if found != self._notes:
            self._notes, self._notes_changed = found, True

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Keep the page up to date inside the block."""
        tasks = [asyncio.create_task(self._draw()), asyncio.create_task(self._compute_reports())]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self._thread.shutdown(wait=False, cancel_futures=True)

    async def _draw(self) -> None:
        while True:
            try:
                await self._draw_once()
            except Exception:
                log.exception("failed to draw the page; drawing it again")
                self.picture.all()
            await asyncio.sleep(COLLECT_SECONDS)

    async def _draw_once(self) -> None:
        picture, now = self.picture, asyncio.get_running_loop().time
        picture.tick()
        time_slice = TimeSlice()
        while not picture.work(lambda: not time_slice.is_over):
            await time_slice.begin_next()
        picture.finish()
        if self.ready.is_set():
            self.publish()
        else:
            picture.tables.forget_changes()
            freeze()  # the first picture stays; do not scan it again
            self.ready.set()
        if now() >= self._causes_due:
            await self._ask_causes(now)
            self._causes_due = now() + CAUSES_EVERY

    async def _ask_causes(self, now: Callable[[], float]) -> None:
        """Compute causes of pending pods within the time limit."""
        end = now() + CAUSES_FOR
        while now() < end and self.picture.pending.compute_one():  # noqa: ASYNC110 - in slices
            await asyncio.sleep(0)

    def publish(self) -> None:
        """Send the changes since the last call as one numbered change."""
        changes = self.picture.tables.take_changes()
        notes = self._notes if self._notes_changed else None
        self._notes_changed = False
        if not changes and notes is None:
            return
        seq = self.change_log.seq + 1
        data = encoder.change(seq, self._now(), changes, notes)
        self.change_log.add(encoder.as_event(seq, data))

    # -- reports -------------------------------------------------------------------------

    async def _compute_reports(self) -> None:
        """Compute queues and the next plan again after changes, at a limited rate."""
        loop = asyncio.get_running_loop()
        await self.ready.wait()
        while True:
            if self._is_changed:
                self._is_changed, began = False, loop.time()
                try:
                    await self._compute_reports_once()
                except Exception:
                    log.exception("failed to compute queues and plans")
                await asyncio.sleep((loop.time() - began) * REPORTS_REST)
            await asyncio.sleep(REPORTS_EVERY)

    async def _compute_reports_once(self) -> None:
        frozen, answers = self.frozen(), self._answers
        queues = await self._in_thread(lambda: answers.queues(frozen))
        self.picture.tables.replace("queues", queues.rows)
        self.picture.hold(dict(queues.held))
        plan = await self._in_thread(lambda: answers.plan(frozen))
        if plan is not None:
            self.picture.tables.set("plans", plan)
        else:
            self.picture.tables.drop("plans", "next")

    def frozen(self) -> FrozenCluster:
        """Return a copy of the current cluster."""
        snapshot = self.picture.snapshot
        objects = [*snapshot.shared_objects(), *self.extras.kept.values()]
        return FrozenCluster(objects, snapshot.profile, self._now())

    def _now(self) -> datetime:
        return self._moment or self.clock.now()

    async def _in_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    # -- requests ---------------------------------------------------------------------------

    async def state(self, at: float | None = None) -> Encoded:
        """Return the whole state, encoded once for all requests within a second."""
        _only_now(at, "at")
        await self.ready.wait()
        now = asyncio.get_running_loop().time()
        if self._state is not None and now - self._state[0] < KEEP_STATE:
            return self._state[1]
        if self._encoding is None:
            self._encoding = asyncio.create_task(self._encode())
        return await asyncio.shield(self._encoding)

    async def _encode(self) -> Encoded:
        loop = asyncio.get_running_loop()
        try:
            self.publish()  # the state must be exactly that after the last change
            taken = encoder.PageState(
                self.change_log.seq, self._now(), self.source, self._notes, self.picture.tables
            )
            encoded = await loop.run_in_executor(None, taken.encoded)
            self._state = (loop.time(), encoded)
            return encoded
        finally:
            self._encoding = None

    def listen(self, after: int) -> ChangeListener | None:
        """Return a listener for changes; None if those after `after` are no longer kept."""
        return self.change_log.listen(after)

    async def changes(self, after: int, most: int) -> Encoded:  # noqa: ARG002 - the interface
        """Raise NotAvailableError: only recordings can be played."""
        raise NotAvailableError("only a recording can be played")

    async def timeline(self) -> Encoded:
        """Raise NotAvailableError: only recordings have a timeline."""
        raise NotAvailableError("only a recording has a timeline")

    async def explain(self, pod: str, after: int | None = None) -> bytes:
        """Explain a pod; LookupError if it does not exist, BusyError for too many requests."""
        _only_now(after, "after")
        await self.ready.wait()
        if self._explaining >= MAX_EXPLANATIONS:
            raise BusyError("too many explanations at the same time; try again")
        self._explaining += 1
        try:
            return await self._explained(pod)
        finally:
            self._explaining -= 1

    async def _explained(self, pod: str) -> bytes:
        frozen, snapshot = await self._copy(pod)
        answer = await self._in_thread(lambda: self._answers.explain(snapshot, frozen, pod))
        return msgspec.json.encode(answer)

    async def _copy(self, pod: str) -> tuple[FrozenCluster, Snapshot]:
        """Return a copy of the cluster: a new one after some seconds, or if the pod is new."""
        now = asyncio.get_running_loop().time()
        kept = self._frozen
        if kept is not None and now - kept[0] <= KEEP_COPY and not self._is_new(pod, kept[2]):
            return kept[1:]
        frozen = self.frozen()
        self._frozen = (now, frozen, await self._in_thread(frozen.snapshot))
        return self._frozen[1:]

    def _is_new(self, pod: str, since: Snapshot) -> bool:
        return since.get(Pod, pod) is None and self.picture.snapshot.get(Pod, pod) is not None


def _only_now(asked: float | None, name: str) -> None:
    if asked is not None:
        raise NotAvailableError(f"{name}: only a recording has other times than now")
