"""A snapshot that follows a cluster.

    async with follow(client) as live:
        await live.synced()
        live.snapshot.decide(pod)

All informers sync first; then the snapshot is filled from their caches as of that one moment, kind
by kind in the cheapest order, and with the changes since. It is filled in time slices: a large
cluster takes seconds, and other tasks of the event loop must not wait for them. From then on every
change is applied as it comes. Until then it is not synced, so that no decision uses part of a
cluster.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TypeVar

from bayplan.base.timeslice import SLICE_SECONDS, TimeSlice
from bayplan.client import Change, Client, Informer, Informers
from bayplan.client.errors import MalformedError
from bayplan.fit import Profile, Snapshot
from bayplan.kube.meta import KubeObject
from bayplan.observe.invalid_objects import ObjectProblem
from bayplan.observe.kinds import OBSERVED, selection_of
from bayplan.observe.observer import Observer

K = TypeVar("K", bound=KubeObject)


class LiveSnapshot:
    """A snapshot, the observer that keeps it, and the informers behind it."""

    def __init__(self, observer: Observer, informers: Informers) -> None:
        self.observer = observer
        self.informers = informers
        self._followed: list[Informer[KubeObject]] = []
        self._filled = asyncio.Event()
        self._deferred: deque[Callable[[], None]] | None = None
        """Changes since the filling began; None before it and after it."""

    @property
    def snapshot(self) -> Snapshot:
        """The model of the cluster."""
        return self.observer.snapshot

    @property
    def is_synced(self) -> bool:
        """Whether the snapshot has been filled."""
        return self._filled.is_set()

    @property
    def followed(self) -> tuple[Informer[KubeObject], ...]:
        """The informers that fill the snapshot, in its order."""
        return tuple(self._followed)

    def cached(self, kind: type[K]) -> Mapping[str, K]:
        """The informer's cache of a kind, by key: observed objects only, nothing assumed."""
        return self.informers.of(kind, selection_of(kind)).objects

    async def synced(self) -> None:
        """Wait until the snapshot has been filled."""
        await self._filled.wait()

    def start(self, kinds: Iterable[type[KubeObject]]) -> None:
        """Begin to follow these kinds."""
        for kind in kinds:
            informer = self.informers.of(kind, selection_of(kind))
            informer.on_malformed(self._undecodable_handler(kind, informer))
            self._followed.append(informer)

    async def fill(self, *, lenient: bool = False, turn: float = SLICE_SECONDS) -> None:
        """Fill the snapshot once every informer has synced, or (lenient) was forbidden to list; a
        kind that is allowed later is added then.
        """
        for informer in self._followed:
            await (informer.answered if lenient else informer.synced).wait()
        # Without an await in between: the caches of one moment, and every change from there on.
        self._deferred = deque()
        listed = deque(
            item for informer in self._followed for item in informer.listen(self._on_change)
        )
        time_slice = TimeSlice(turn)
        while listed or self._deferred:
            if listed:
                self.observer.handle(Change("added", new=listed.popleft()))
            else:
                self._deferred.popleft()()
            if time_slice.is_over:
                await time_slice.begin_next()
        self._deferred = None
        self._filled.set()

    def _on_change(self, change: Change[KubeObject]) -> None:
        self._in_order(lambda: self.observer.handle(change))

    def _in_order(self, take: Callable[[], None]) -> None:
        """Apply a change now, or after all deferred ones."""
        if self._deferred is None:
            take()
        else:
            self._deferred.append(take)

    def _undecodable_handler(
        self, kind: type[KubeObject], informer: Informer[KubeObject]
    ) -> Callable[[str, MalformedError | None], None]:
        def note(key: str, error: MalformedError | None) -> None:
            if error is None:
                self._in_order(lambda: self.observer.invalid.drop(kind, key))
            else:
                problem = ObjectProblem(kind, key, str(error), uid=error.uid)
                known = informer.objects.get(key)
                self._in_order(lambda: self.observer.note_undecodable(problem, known))

        return note


@asynccontextmanager
async def follow(
    client: Client,
    *,
    profile: Profile | None = None,
    kinds: Iterable[type[KubeObject]] = OBSERVED,
    lenient: bool = False,
    turn: float = SLICE_SECONDS,
) -> AsyncIterator[LiveSnapshot]:
    """A snapshot that follows the client's cluster while the context lasts; a lenient one does
    without the kinds that are not served or not allowed. It is filled in time slices of `turn`
    seconds.
    """
    async with Informers(client) as informers:
        # Device claims are not watched, so pods that have any are reported as not evaluated.
        known = replace(profile or Profile(), knows_devices=False)
        live = LiveSnapshot(Observer(Snapshot(profile=known)), informers)
        live.start(kinds)
        filling = asyncio.ensure_future(live.fill(lenient=lenient, turn=turn))
        try:
            yield live
        finally:
            filling.cancel()
