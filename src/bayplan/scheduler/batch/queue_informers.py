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
from bayplan.kube.queueing import PodGroup, Queue

log = logging.getLogger(__name__)
LOOK_EVERY = 15.0
"""Seconds between two looks for the kinds."""


class Follower(Protocol):
    """Whoever wants to know of queues and groups."""

    def without_kinds(self) -> None:
        """The server does not serve them, or not yet."""
        ...

    def heed_queue(self, change: Change[Queue]) -> None:
        """A queue came, changed or went."""
        ...

    def heed_group(self, change: Change[PodGroup]) -> None:
        """A group came, changed or went."""
        ...

    def with_kinds(self) -> None:
        """All queues and groups that there are have been told."""
        ...


async def follow_queues(client: Client, informers: Informers, follower: Follower) -> None:
    """Tell a follower of queues and groups, as long as the informers run."""
    while not await _served(client):
        follower.without_kinds()
        await client.clock.sleep(LOOK_EVERY)
    queues, groups = informers.of(Queue), informers.of(PodGroup)
    for informer in (queues.synced, groups.synced):
        await informer.wait()
    queues.on_change(follower.heed_queue)
    groups.on_change(follower.heed_group)
    log.info("follows %d queues and %d groups", len(queues.objects), len(groups.objects))
    follower.with_kinds()


async def _served(client: Client) -> bool:
    """Whether the server has both kinds; whoever cannot be asked is asked until it answers."""
    while True:
        try:
            return await _has(client, Queue) and await _has(client, PodGroup)
        except ClientError as error:
            log.warning("no word of queues: %s", error)
            await client.clock.sleep(LOOK_EVERY)


async def _has(client: Client, kind: type[KubeObject]) -> bool:
    try:
        async for _ in client.pages(kind, limit=1, unfit=lambda _: None):
            return True
    except NotFoundError:
        pass
    return False
