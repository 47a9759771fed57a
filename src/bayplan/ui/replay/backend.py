"""The page of a recording: the state at any time, and the changes after it.

All work is done in one thread, which reads the file. A few players are kept, each at the change
that its page has reached; other changes need a new player.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from concurrent.futures import ThreadPoolExecutor
from time import monotonic
from typing import TypeVar

import msgspec

from bayplan.fit import Profile
from bayplan.kube.times import timestamp
from bayplan.recordings import RecordedChange, RecordedState, Recording
from bayplan.ui import encoder
from bayplan.ui.answers import PageAnswers
from bayplan.ui.backend import NotAvailableError
from bayplan.ui.changelog import ChangeListener
from bayplan.ui.encoder import Encoded, PageSource
from bayplan.ui.replay.scene import Scene
from bayplan.ui.replay.timeline import ReplayTimeline

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")
MAX_PLAYERS = 3
MAX_STATES = 8
REPORT_SECONDS = 1.0
"""Time for computing queues and plans at every step of a request; then only at the last."""
STEP_SECONDS = 1.0
"""Changes within so many seconds are sent as one."""


class Player:
    """A scene, and the changes after it."""

    def __init__(self, scene: Scene, changes: Iterator[RecordedChange]) -> None:
        self.scene = scene
        self._changes = changes
        self._next = next(changes, None)

    def step(self) -> list[RecordedChange]:
        """Return the changes of the next step; empty at the end."""
        found: list[RecordedChange] = []
        while self._next is not None and (not found or self._next.at - found[0].at < STEP_SECONDS):
            found.append(self._next)
            self._next = next(self._changes, None)
        return found

    @property
    def is_over(self) -> bool:
        """Whether there are no more changes."""
        return self._next is None


class Replay:
    """The backend of a recording."""

    def __init__(
        self,
        recording: Recording,
        name: str,
        *,
        profile: Profile | None = None,
        answers: PageAnswers | None = None,
        kind: str = "recording",
    ) -> None:
        self._recording = recording
        self._profile = profile
        self._answers = answers or PageAnswers()
        start, end = timestamp(recording.start), timestamp(recording.end)
        self._source = PageSource(kind, name, live=False, start=start, end=end)
        cut = f"the last {recording.truncated_bytes} bytes of the recording cannot be read"
        self._notes = [cut] if recording.truncated_bytes else []
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="replay")
        self._players: OrderedDict[int, Player] = OrderedDict()
        self._states: OrderedDict[tuple[int, str], Encoded] = OrderedDict()
        """By the last change and the second: waiting times differ by the second."""
        self._timeline: Encoded | None = None

    def close(self) -> None:
        """Stop the thread."""
        self._thread.shutdown(wait=True, cancel_futures=True)

    async def state(self, at: float | None) -> Encoded:
        """Return the state at a time; at the start by default."""
        return await self._in_thread(lambda: self._state(max(0.0, at or 0.0)))

    def listen(self, after: int) -> ChangeListener | None:
        """Return a listener without changes: a recording is played on request."""
        return ChangeListener(lambda _: None) if after >= 0 else None

    async def changes(self, after: int, most: int) -> Encoded:
        """Return the changes after a number."""
        return await self._in_thread(lambda: self._changes(after, most))

    async def timeline(self) -> Encoded:
        """Return the timeline, which is read once."""
        return await self._in_thread(self._read_timeline)

    async def explain(self, pod: str, after: int | None) -> bytes:
        """Explain a pod after a change; at the start by default."""
        return await self._in_thread(lambda: self._explain(pod, after))

    async def _in_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    def _scene(self, state: RecordedState) -> Scene:
        moment = self._recording.moment(state.at)
        return Scene(state, moment, self._profile, self._answers)

    def _state(self, at: float) -> Encoded:
        state = self._recording.state_at(at)
        which = (state.seq, timestamp(self._recording.moment(state.at)))
        known = self._states.get(which)
        if known is not None:
            self._states.move_to_end(which)
            return known
        scene = self._scene(state)
        scene.draw_all()
        found = encoder.PageState(
            state.seq, scene.moment, self._source, self._notes, scene.picture.tables
        ).encoded()
        _keep(self._states, which, found, MAX_STATES)
        self._keep_player(Player(scene, self._recording.after(state.seq)))
        return found

    def _changes(self, after: int, most: int) -> Encoded:
        if after < 0:
            raise NotAvailableError("after: must be the number of a change")
        player = self._players.pop(after, None)
        if player is None:
            scene = self._scene(self._recording.state_after(after))
            scene.draw_all()
            player = Player(scene, self._recording.after(after))
        found: list[msgspec.Raw] = []
        report_seconds = 0.0
        while len(found) < most and (step := player.step()):
            moment = self._recording.moment(step[-1].at)
            player.scene.play(step, moment)
            if report_seconds < REPORT_SECONDS or player.is_over or len(found) + 1 == most:
                began = monotonic()
                player.scene.compute_reports()
                report_seconds += monotonic() - began
            changes = player.scene.picture.tables.take_changes()
            found.append(msgspec.Raw(encoder.change(player.scene.seq, moment, changes)))
        self._keep_player(player)
        plain = msgspec.json.encode({"changes": found, "end": player.is_over})
        return Encoded(plain, encoder.gzipped(plain))

    def _read_timeline(self) -> Encoded:
        if self._timeline is None:
            plain = msgspec.json.encode(ReplayTimeline(self._recording).read())
            self._timeline = Encoded(plain, encoder.gzipped(plain))
        return self._timeline

    def _explain(self, pod: str, after: int | None) -> bytes:
        recording = self._recording
        state = recording.state_at(0.0) if after is None else recording.state_after(after)
        frozen = self._scene(state).frozen()
        return msgspec.json.encode(self._answers.explain(frozen.snapshot(), frozen, pod))

    def _keep_player(self, player: Player) -> None:
        _keep(self._players, player.scene.seq, player, MAX_PLAYERS)


def _keep(cache: OrderedDict[K, T], key: K, value: T, limit: int) -> None:
    cache[key] = value
    cache.move_to_end(key)
    while len(cache) > limit:
        cache.popitem(last=False)
