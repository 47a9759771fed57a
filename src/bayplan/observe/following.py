"""A snapshot that follows a cluster.

    async with follow(client) as live:
        await live.synced()
        live.snapshot.decide(pod)

All informers fill up first; then the snapshot is filled from what their copies hold at that one
moment, kind by kind in the cheapest order, and with what has changed since, in turns: a large
cluster takes seconds, and others on the event loop must not wait for them. From then on it takes
every change as it comes. Until then it is not synced, so that nobody decides on half a cluster.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TypeVar

from bayplan.base.turns import TURN, Turns
from bayplan.client import Change, Client, Informer, Informers
from bayplan.client.errors import MalformedError
from bayplan.fit import Profile, Snapshot
from bayplan.kube.meta import KubeObject
from bayplan.observe.kinds import OBSERVED, which
from bayplan.observe.observer import Observer
from bayplan.observe.setaside import Problem

K = TypeVar("K", bound=KubeObject)


class LiveSnapshot:
    """A snapshot, the observer that keeps it, and the informers behind it."""

    def __init__(self, observer: Observer, informers: Informers) -> None:
        self.observer = observer
        self.informers = informers
        self._followed: list[Informer[KubeObject]] = []
        self._filled = asyncio.Event()
        self._later: deque[Callable[[], None]] | None = None
        """What has been told since the filling began; None before it and after it."""

    @property
    def snapshot(self) -> Snapshot:
        """The model of the cluster."""
        return self.observer.snapshot

    @property
    def is_synced(self) -> bool:
        """Whether the snapshot has had the whole picture."""
        return self._filled.is_set()

    @property
    def followed(self) -> tuple[Informer[KubeObject], ...]:
        """The informers that fill the snapshot, in its order."""
        return tuple(self._followed)

    def copy_of(self, kind: type[K]) -> Mapping[str, K]:
        """The informer's own copy of a kind, by key: what the server has said, nothing assumed."""
        return self.informers.of(kind, which(kind)).objects

    async def synced(self) -> None:
        """Wait until the snapshot has the whole picture."""
        await self._filled.wait()

    def start(self, kinds: Iterable[type[KubeObject]]) -> None:
        """Begin to follow these kinds."""
        for kind in kinds:
            informer = self.informers.of(kind, which(kind))
            informer.on_unfit(self._unfit(kind, informer))
            self._followed.append(informer)

    async def fill(self, *, lenient: bool = False, turn: float = TURN) -> None:
        """Fill the snapshot as soon as every informer has its whole copy, or (lenient) was refused
        it; what is refused now and granted later is taken then.
        """
        for informer in self._followed:
            await (informer.answered if lenient else informer.synced).wait()
        # Without an await in between: the copies of one moment, and every change from there on.
        self._later = deque()
        there = deque(item for informer in self._followed for item in informer.listen(self._told))
        turns = Turns(turn)
        while there or self._later:
            if there:
                self.observer.take(Change("added", new=there.popleft()))
            else:
                self._later.popleft()()
            if turns.is_over:
                await turns.next()
        self._later = None
        self._filled.set()

    def _told(self, change: Change[KubeObject]) -> None:
        self._in_order(lambda: self.observer.take(change))

    def _in_order(self, take: Callable[[], None]) -> None:
        """Take something now, or after all that came before it."""
        if self._later is None:
            take()
        else:
            self._later.append(take)

    def _unfit(
        self, kind: type[KubeObject], informer: Informer[KubeObject]
    ) -> Callable[[str, MalformedError | None], None]:
        def note(key: str, error: MalformedError | None) -> None:
            if error is None:
                self._in_order(lambda: self.observer.aside.drop(kind, key))
            else:
                problem = Problem(kind, key, str(error), uid=error.uid)
                known = informer.objects.get(key)
                self._in_order(lambda: self.observer.unfit(problem, known))

        return note


@asynccontextmanager
async def follow(
    client: Client,
    *,
    profile: Profile | None = None,
    kinds: Iterable[type[KubeObject]] = OBSERVED,
    lenient: bool = False,
    turn: float = TURN,
) -> AsyncIterator[LiveSnapshot]:
    """A snapshot that follows the client's cluster for as long as the context lasts; a lenient one
    does without the kinds that are not served, or not for this client. It is filled in turns of so
    many seconds.
    """
    async with Informers(client) as informers:
        # Claims to devices are not followed, so that no pod that has any is taken for judged.
        known = replace(profile or Profile(), knows_devices=False)
        live = LiveSnapshot(Observer(Snapshot(profile=known)), informers)
        live.start(kinds)
        filling = asyncio.ensure_future(live.fill(lenient=lenient, turn=turn))
        try:
            yield live
        finally:
            filling.cancel()
