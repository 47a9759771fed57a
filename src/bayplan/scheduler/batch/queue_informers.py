"""Queues and groups are followed where the cluster has them, from when it has them.

Their kinds come with CustomResourceDefinitions, which may be installed at any time. Until the
server serves both, it is asked now and then; from then on they are followed like all else.
"""

from __future__ import annotations

import logging
from typing import Protocol

from bayplan.client import Change, Client, Informers
from bayplan.client.errors import ClientError, NotFoundError
from bayplan.kube.meta import KubeObject
from bayplan.kube.volcano import PodGroup, Queue

log = logging.getLogger(__name__)
LOOK_EVERY = 15.0
"""Seconds between two looks for the kinds."""


class QueueListener(Protocol):
    """Receives the changes of queues and groups."""

    def on_kinds_missing(self) -> None:
        """Called when the server does not serve them, or not yet."""
        ...

    def on_queue_change(self, change: Change[Queue]) -> None:
        """Called for each change of a queue."""
        ...

    def on_group_change(self, change: Change[PodGroup]) -> None:
        """Called for each change of a PodGroup."""
        ...

    def on_kinds_served(self) -> None:
        """Called once all queues and groups have been observed."""
        ...


async def follow_queues(client: Client, informers: Informers, listener: QueueListener) -> None:
    """Pass changes of queues and groups to a listener, as long as the informers run."""
    while not await _served(client):
        listener.on_kinds_missing()
        await client.clock.sleep(LOOK_EVERY)
    queues, groups = informers.of(Queue), informers.of(PodGroup)
    for informer in (queues.synced, groups.synced):
        await informer.wait()
    queues.on_change(listener.on_queue_change)
    groups.on_change(listener.on_group_change)
    log.info("watching %d queues and %d groups", len(queues.objects), len(groups.objects))
    listener.on_kinds_served()


async def _served(client: Client) -> bool:
    """Whether the server serves both kinds; asked again until it answers."""
    while True:
        try:
            return await _has(client, Queue) and await _has(client, PodGroup)
        except ClientError as error:
            log.warning("no word of queues: %s", error)
            await client.clock.sleep(LOOK_EVERY)


async def _has(client: Client, kind: type[KubeObject]) -> bool:
    try:
        async for _ in client.pages(kind, limit=1, malformed=lambda _: None):
            return True
    except NotFoundError:
        pass
    return False
