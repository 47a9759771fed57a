"""A snapshot that follows a cluster.

    async with follow(client) as live:
        await live.synced()
        live.snapshot.decide(pod)

All informers fill up first; then the snapshot is filled from their copies in one go, kind by kind
in the cheapest order, and from then on takes every change as it comes. Until then it is empty, so
that nobody decides on half a cluster.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TypeVar

from bayplan.client import Client, Informer, Informers
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

    async def fill(self, *, lenient: bool = False) -> None:
        """Fill the snapshot as soon as every informer has its whole copy, or (lenient) was refused
        it; what is refused now and granted later is taken then.
        """
        for informer in self._followed:
            await (informer.answered if lenient else informer.synced).wait()
        # Without an await in between: no change can come between one kind and the next.
        for informer in self._followed:
            informer.on_change(self.observer.take)
        self._filled.set()

    def _unfit(
        self, kind: type[KubeObject], informer: Informer[KubeObject]
    ) -> Callable[[str, MalformedError | None], None]:
        def note(key: str, error: MalformedError | None) -> None:
            if error is None:
                self.observer.aside.drop(kind, key)
            else:
                problem = Problem(kind, key, str(error), uid=error.uid)
                self.observer.unfit(problem, informer.objects.get(key))

        return note


@asynccontextmanager
async def follow(
    client: Client,
    *,
    profile: Profile | None = None,
    kinds: Iterable[type[KubeObject]] = OBSERVED,
    lenient: bool = False,
) -> AsyncIterator[LiveSnapshot]:
    """A snapshot that follows the client's cluster for as long as the context lasts; a lenient one
    does without the kinds that are not served, or not for this client.
    """
    async with Informers(client) as informers:
        # Claims to devices are not followed, so that no pod that has any is taken for judged.
        known = replace(profile or Profile(), knows_devices=False)
        live = LiveSnapshot(Observer(Snapshot(profile=known)), informers)
        live.start(kinds)
        filling = asyncio.ensure_future(live.fill(lenient=lenient))
        try:
            yield live
        finally:
            filling.cancel()
