"""The page of a recording: states at any moment, and what changes from there on.

All of it is worked out in one thread, which has the file to itself. A few players are kept, each at
the change that its page has come to; who asks for what follows another change waits for a new one.
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
from bayplan.recordings import Change, Recording, State
from bayplan.ui import encoding
from bayplan.ui.answers import Answers
from bayplan.ui.backend import NotOfferedError
from bayplan.ui.encoding import Encoded, Source
from bayplan.ui.journal import Listener
from bayplan.ui.replay.scene import Scene
from bayplan.ui.replay.timeline import Timeline

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")
MOST_PLAYERS = 3
MOST_STATES = 8
THINK_SECONDS = 1.0
"""Seconds for which queues and plans are worked out for every step that is asked for at once; of
the other steps, only for the last.
"""
STEP_SECONDS = 1.0
"""Changes of so many seconds are told as one."""


class Player:
    """A scene, and the changes that come after it."""

    def __init__(self, scene: Scene, coming: Iterator[Change]) -> None:
        self.scene = scene
        self._coming = coming
        self._next = next(coming, None)

    def step(self) -> list[Change]:
        """What happens next, within a moment; nothing at the end."""
        found: list[Change] = []
        while self._next is not None and (not found or self._next.at - found[0].at < STEP_SECONDS):
            found.append(self._next)
            self._next = next(self._coming, None)
        return found

    @property
    def is_over(self) -> bool:
        """Whether nothing comes any more."""
        return self._next is None


class Replay:
    """A recording as a page."""

    def __init__(
        self,
        recording: Recording,
        name: str,
        *,
        profile: Profile | None = None,
        answers: Answers | None = None,
        kind: str = "recording",
    ) -> None:
        self._recording = recording
        self._profile = profile
        self._answers = answers or Answers()
        start, end = timestamp(recording.start), timestamp(recording.end)
        self._source = Source(kind, name, live=False, start=start, end=end)
        cut = f"the last {recording.cut} bytes of the recording cannot be read"
        self._notes = [cut] if recording.cut else []
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="replay")
        self._players: OrderedDict[int, Player] = OrderedDict()
        self._states: OrderedDict[tuple[int, str], Encoded] = OrderedDict()
        """By the last change, and by the second that a state is of: waiting takes time."""
        self._timeline: Encoded | None = None

    def close(self) -> None:
        """Stop working."""
        self._thread.shutdown(wait=True, cancel_futures=True)

    async def state(self, at: float | None) -> Encoded:
        """The state at a moment; at the beginning if none is named."""
        return await self._worked_out(lambda: self._state(max(0.0, at or 0.0)))

    def listen(self, after: int) -> Listener | None:
        """Nothing comes by itself."""
        return Listener(lambda _: None) if after >= 0 else None

    async def changes(self, after: int, most: int) -> Encoded:
        """What follows a change."""
        return await self._worked_out(lambda: self._changes(after, most))

    async def timeline(self) -> Encoded:
        """What happened when, read once."""
        return await self._worked_out(self._read_timeline)

    async def explain(self, pod: str, after: int | None) -> bytes:
        """Why a pod was where it was after a change; at the beginning if none is named."""
        return await self._worked_out(lambda: self._explain(pod, after))

    async def _worked_out(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    def _scene(self, state: State) -> Scene:
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
        scene.settle()
        found = encoding.State(
            state.seq, scene.moment, self._source, self._notes, scene.picture.tables
        ).encoded()
        _keep(self._states, which, found, MOST_STATES)
        self._keep_player(Player(scene, self._recording.after(state.seq)))
        return found

    def _changes(self, after: int, most: int) -> Encoded:
        if after < 0:
            raise NotOfferedError("after: the number of a change")
        player = self._players.pop(after, None)
        if player is None:
            scene = self._scene(self._recording.state_after(after))
            scene.settle()
            player = Player(scene, self._recording.after(after))
        found: list[msgspec.Raw] = []
        thinking = 0.0
        while len(found) < most and (step := player.step()):
            moment = self._recording.moment(step[-1].at)
            player.scene.play(step, moment)
            if thinking < THINK_SECONDS or player.is_over or len(found) + 1 == most:
                began = monotonic()
                player.scene.think()
                thinking += monotonic() - began
            changes = player.scene.picture.tables.take_changes()
            found.append(msgspec.Raw(encoding.change(player.scene.seq, moment, changes)))
        self._keep_player(player)
        plain = msgspec.json.encode({"changes": found, "end": player.is_over})
        return Encoded(plain, encoding.gzipped(plain))

    def _read_timeline(self) -> Encoded:
        if self._timeline is None:
            plain = msgspec.json.encode(Timeline(self._recording).read())
            self._timeline = Encoded(plain, encoding.gzipped(plain))
        return self._timeline

    def _explain(self, pod: str, after: int | None) -> bytes:
        recording = self._recording
        state = recording.state_at(0.0) if after is None else recording.state_after(after)
        still = self._scene(state).still()
        return msgspec.json.encode(self._answers.explain(still.snapshot(), still, pod))

    def _keep_player(self, player: Player) -> None:
        _keep(self._players, player.scene.seq, player, MOST_PLAYERS)


def _keep(shelf: OrderedDict[K, T], key: K, one: T, most: int) -> None:
    shelf[key] = one
    shelf.move_to_end(key)
    while len(shelf) > most:
        shelf.popitem(last=False)
