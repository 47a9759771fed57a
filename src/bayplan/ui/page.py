"""A page of a cluster that goes on, or stands still: its state, and the changes of it.

The picture is drawn in slices, so that others on the event loop have their turn; what has changed
is collected for a moment and told as one numbered difference. Why pods wait is asked in what time
is left, and whatever takes seconds (queues, the next plan, an explanation) is worked out in a
thread, on a copy of the cluster, at a pace that leaves most of the machine to others.
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
from bayplan.base.turns import Turns
from bayplan.fit import Snapshot
from bayplan.kube.pods import Pod
from bayplan.ui import encoding
from bayplan.ui.answers import Answers, Still
from bayplan.ui.backend import BusyError, NotOfferedError
from bayplan.ui.encoding import Encoded, Source
from bayplan.ui.extras import Extras
from bayplan.ui.journal import Journal, Listener
from bayplan.ui.picture.picture import Picture

log = logging.getLogger(__name__)
T = TypeVar("T")
COLLECT = 0.15
"""Seconds for which changes are collected."""
CAUSES_EVERY, CAUSES_FOR = 1.0, 0.2
"""How often the causes of waiting are asked for, and how many seconds of that time it may take."""
THOUGHTS_EVERY, THOUGHTS_SHARE = 2.0, 8.0
"""How often queues and plans are worked out, and how many times as long it rests as it took."""
KEEP_STATE = 1.0
"""Seconds for which an encoded state is handed out again: differences lead on from it."""
KEEP_STILL = 3.0
"""Seconds for which a copy of the cluster is good enough to explain by."""
MOST_NOTES = 100
MOST_ASKING = 4


class Page:
    """The page of one cluster."""

    def __init__(
        self,
        picture: Picture,
        source: Source,
        clock: Clock,
        answers: Answers | None = None,
        *,
        moment: datetime | None = None,
    ) -> None:
        self.picture = picture
        self._moment = moment
        """When it was that the cluster looked so, if it stands still."""
        self.source = source
        self.clock = clock
        # A page that comes back to another server than it left must not take one for the other.
        self.journal = Journal(start=int(clock.now().timestamp() * 1000))
        self.ready = asyncio.Event()
        """Set once there is a first picture."""
        self.extras = Extras(picture, self.stir)
        self._answers = answers or Answers()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="page")
        self._notes: list[str] = []
        self._notes_changed = False
        self._state: tuple[float, Encoded] | None = None
        self._encoding: asyncio.Task[Encoded] | None = None
        self._still: tuple[float, Still, Snapshot] | None = None
        self._asking = 0
        self._stirred = True
        self._waiting_due = self._thoughts_due = 0.0

    # -- what happens ----------------------------------------------------------------------------

    def stir(self) -> None:
        """Something has changed that queues and plans may rest on."""
        self._stirred = True

    def set_notes(self, notes: Iterable[str]) -> None:
        """Say what could not be read."""
        found = list(notes)[:MOST_NOTES]
        if found != self._notes:
            self._notes, self._notes_changed = found, True

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Keep the page up to date for as long as this lasts."""
        tasks = [asyncio.create_task(self._draw()), asyncio.create_task(self._think())]
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
                log.exception("the page could not be drawn; it is drawn anew")
                self.picture.all()
            await asyncio.sleep(COLLECT)

    async def _draw_once(self) -> None:
        picture, now = self.picture, asyncio.get_running_loop().time
        picture.tick()
        turns = Turns()
        while not picture.work(lambda: not turns.is_over):
            await turns.next()
        picture.finish()
        if self.ready.is_set():
            self.tell()
        else:
            picture.tables.forget_changes()
            freeze()  # the first picture stays, and need not be looked through again and again
            self.ready.set()
        if now() >= self._waiting_due:
            await self._ask_causes(now)
            self._waiting_due = now() + CAUSES_EVERY

    async def _ask_causes(self, now: Callable[[], float]) -> None:
        """Ask why pods wait, as many as there is time for."""
        end = now() + CAUSES_FOR
        while now() < end and self.picture.waiting.ask_one():  # noqa: ASYNC110 - in slices
            await asyncio.sleep(0)

    def tell(self) -> None:
        """Number what has changed, and tell it."""
        changes = self.picture.tables.take_changes()
        notes = self._notes if self._notes_changed else None
        self._notes_changed = False
        if not changes and notes is None:
            return
        seq = self.journal.seq + 1
        data = encoding.change(seq, self._now(), changes, notes)
        self.journal.add(encoding.as_event(seq, data))

    # -- what takes long -------------------------------------------------------------------------

    async def _think(self) -> None:
        """Work out queues and the next plan, whenever something has changed and time has passed."""
        loop = asyncio.get_running_loop()
        await self.ready.wait()
        while True:
            if self._stirred:
                self._stirred, began = False, loop.time()
                try:
                    await self._think_once()
                except Exception:
                    log.exception("queues and plans could not be worked out")
                await asyncio.sleep((loop.time() - began) * THOUGHTS_SHARE)
            await asyncio.sleep(THOUGHTS_EVERY)

    async def _think_once(self) -> None:
        still, answers = self.still(), self._answers
        queues = await self._in_thread(lambda: answers.queues(still))
        self.picture.tables.replace("queues", queues.rows)
        self.picture.hold(dict(queues.held))
        plan = await self._in_thread(lambda: answers.plan(still))
        if plan is not None:
            self.picture.tables.set("plans", plan)
        else:
            self.picture.tables.drop("plans", "next")

    def still(self) -> Still:
        """The cluster as it now is."""
        snapshot = self.picture.snapshot
        objects = [*snapshot.shared_objects(), *self.extras.kept.values()]
        return Still(objects, snapshot.profile, self._now())

    def _now(self) -> datetime:
        return self._moment or self.clock.now()

    async def _in_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    # -- what is asked ---------------------------------------------------------------------------

    async def state(self, at: float | None = None) -> Encoded:
        """The whole state, encoded once for all who ask within a moment."""
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
            self.tell()  # so that the state is exactly that after the last change
            taken = encoding.State(
                self.journal.seq, self._now(), self.source, self._notes, self.picture.tables
            )
            encoded = await loop.run_in_executor(None, taken.encoded)
            self._state = (loop.time(), encoded)
            return encoded
        finally:
            self._encoding = None

    def listen(self, after: int) -> Listener | None:
        """Listen to changes; None if those after that one are not known any more."""
        return self.journal.listen(after)

    async def changes(self, after: int, most: int) -> Encoded:
        """Only recordings are played."""
        raise NotOfferedError(f"only a recording is played ({most} changes after {after})")

    async def timeline(self) -> Encoded:
        """Only recordings have one."""
        raise NotOfferedError("only a recording has a time line")

    async def explain(self, pod: str, after: int | None = None) -> bytes:
        """Why a pod is where it is; LookupError if there is no such pod, BusyError if too many ask
        at once.
        """
        _only_now(after, "after")
        await self.ready.wait()
        if self._asking >= MOST_ASKING:
            raise BusyError("too many explanations are asked for at once; try again")
        self._asking += 1
        try:
            return await self._explained(pod)
        finally:
            self._asking -= 1

    async def _explained(self, pod: str) -> bytes:
        still, snapshot = await self._copy(pod)
        answer = await self._in_thread(lambda: self._answers.explain(snapshot, still, pod))
        return msgspec.json.encode(answer)

    async def _copy(self, pod: str) -> tuple[Still, Snapshot]:
        """A copy of the cluster to explain by: a new one after a while, or if the pod has come
        since.
        """
        now = asyncio.get_running_loop().time()
        kept = self._still
        if kept is not None and now - kept[0] <= KEEP_STILL and not self._has_come(pod, kept[2]):
            return kept[1:]
        still = self.still()
        self._still = (now, still, await self._in_thread(still.snapshot))
        return self._still[1:]

    def _has_come(self, pod: str, since: Snapshot) -> bool:
        return since.get(Pod, pod) is None and self.picture.snapshot.get(Pod, pod) is not None


def _only_now(asked: float | None, name: str) -> None:
    if asked is not None:
        raise NotOfferedError(f"{name}: only a recording has other moments than now")
