"""A cluster read once, as a dump of it would be: page by page, checked, and only what may be read.

Every list is of one moment. Lists begin one after another, those of objects that refer to others
first, so that what an object refers to is there as well unless it went in that instant; their
further pages come side by side. What may not be listed is `unseen`; kinds that the cluster does not
serve have no objects.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import msgspec

from bayplan.base.garbage import paused_collector
from bayplan.client import Client, Selection
from bayplan.client.errors import ForbiddenError, GoneError, MalformedError, NotFoundError
from bayplan.client.objects import RawPage
from bayplan.client.resources import Resource, resource_of
from bayplan.kube.codec import KINDS, ObjectError, read_head
from bayplan.kube.loading import Collector, Loaded, Progress, Unseen
from bayplan.kube.meta import KubeObject
from bayplan.observe.permissions import Kind, Needs, note_of

ALL_AT_ONCE = 0
PAGE = 500
MOST_MOMENTS = 20
"""How often a server may forget before that is an error."""
MOST_IN_VAIN = 20
"""How many pages of a list may bring nothing new, one after another, before that is an error."""


class NotAllowedError(Exception):
    """A kind may not be listed without which there is no answer."""

    def __init__(self, unseen: Unseen) -> None:
        super().__init__(note_of(unseen))
        kind = KINDS[unseen.kind]
        self.elsewhere = kind.namespaced
        """Whether a smaller question, about one namespace, might be answered."""


async def read_once(
    client: Client, needs: Needs, *, namespace: str = "", progress: Progress | None = None
) -> Loaded:
    """All objects of the kinds needed; of those that may only be listed in that namespace, its own.

    NotAllowedError if a vital kind may not be listed at all.
    """
    reading = _Reading(client, needs, namespace, progress or (lambda *_: None))
    try:
        with paused_collector():
            async with asyncio.TaskGroup() as tasks:
                # The lock hands on in the order in which it was asked for.
                found = [tasks.create_task(reading.one(kind)) for kind in reversed(needs.kinds)]
    except ExceptionGroup as errors:
        raise errors.exceptions[0] from None
    whole = Loaded()
    for task in reversed(found):
        whole.join(task.result())
    whole.read = frozenset(kind.__name__ for kind in needs.kinds)
    return whole


@dataclass(slots=True)
class _Reading:
    """Lists under way."""

    client: Client
    needs: Needs
    namespace: str
    progress: Progress
    opening: asyncio.Lock = field(default_factory=asyncio.Lock)
    shares: dict[Kind, float] = field(default_factory=dict)
    seen: int = 0
    failed: bool = False

    async def one(self, kind: Kind) -> Loaded:
        """All of a kind."""
        collector = Collector()
        like = KINDS[kind.__name__]
        async for page in self._pages(kind, collector.loaded.unseen):
            for item in page.items or ():
                collector.take(item, like)
            self._tell(kind, len(collector.loaded.objects), page)
        self.shares[kind] = 1.0
        return collector.loaded

    async def _pages(self, kind: Kind, unseen: list[Unseen]) -> AsyncIterator[RawPage]:
        found = allowed_pages(self.client, kind, self.namespace, unseen)
        async with self.opening:
            # Whoever is next begins nothing any more once one has failed.
            first = None if self.failed else await self._first(found, unseen)
        if first is not None:
            yield first
            async for page in found:
                yield page

    async def _first(self, found: AsyncIterator[RawPage], unseen: list[Unseen]) -> RawPage | None:
        self.failed = True
        page = await anext(found, None)
        refuse_blindness(self.needs, unseen)
        self.failed = False
        return page

    def _tell(self, kind: Kind, count: int, page: RawPage) -> None:
        self.seen += len(page.items or ())
        left = page.metadata.remaining_item_count or 0
        self.shares[kind] = count / max(1, count + left)
        self.progress(resource_of(kind).plural, self.seen, self._share())

    def _share(self) -> float:
        return sum(self.shares.values()) / len(self.needs.kinds)


def refuse_blindness(needs: Needs, unseen: list[Unseen]) -> None:
    """NotAllowedError if a vital kind could not be read at all."""
    for one in unseen:
        if not one.but_in and KINDS[one.kind].type in needs.vital:
            raise NotAllowedError(one)


async def allowed_pages(
    client: Client, kind: Kind, namespace: str, unseen: list[Unseen]
) -> AsyncIterator[RawPage]:
    """All that may be listed of a kind: of all namespaces, or of that one alone. What may not be is
    added to what is unseen.
    """
    resource = resource_of(kind)
    try:
        async for page in whole_list(client, resource, Selection()):
            yield page
    except NotFoundError:
        if not resource.group:  # every cluster has pods and nodes
            raise
    except ForbiddenError as error:
        if not await _is_served(client, resource):
            return
        but_in = namespace if resource.namespaced else ""
        unseen.append(Unseen(resource.kind, said_by(error), but_in))
        if but_in:
            async for page in _of_one_namespace(client, resource, namespace, unseen):
                yield page


async def _of_one_namespace(
    client: Client, resource: Resource[KubeObject], namespace: str, unseen: list[Unseen]
) -> AsyncIterator[RawPage]:
    try:
        async for page in whole_list(client, resource, Selection(namespace)):
            yield page
    except ForbiddenError as error:
        unseen[-1] = Unseen(resource.kind, said_by(error))


async def _is_served(client: Client, resource: Resource[KubeObject]) -> bool:
    """Whether the cluster has the group: what may not be read is refused before it is looked for,
    but which groups there are everybody may know.
    """
    try:
        await client.raw(f"/apis/{resource.group}" if resource.group else "/api")
    except NotFoundError:
        return False
    except ForbiddenError:
        return True
    return True


def said_by(error: ForbiddenError) -> str:
    """Who may not do what, in the server's words: it says first which resource it is about."""
    said = error.status.message
    return (said.partition(" is forbidden: ")[2] or said)[:400]


async def whole_list(
    client: Client, resource: Resource[KubeObject], which: Selection
) -> AsyncIterator[RawPage]:
    """All pages of a list. If they take so long that the server forgets their moment, the rest is
    of a later one.
    """
    token, seen, in_vain = "", set[str](), 0
    for attempt in range(MOST_MOMENTS):
        limit = ALL_AT_ONCE if attempt and not token else PAGE
        try:
            async for page in client.raw_pages(resource, which, limit=limit, token=token):
                left = _without(page, seen)
                in_vain = 0 if left.items else in_vain + 1
                if in_vain > MOST_IN_VAIN:
                    raise MalformedError(f"the list of {resource} has no end")
                yield left
        except GoneError as error:
            if attempt == MOST_MOMENTS - 1:
                raise
            token = error.status.metadata.continue_
        else:
            return


def _without(page: RawPage, seen: set[str]) -> RawPage:
    """The page without what others had, which are told of it."""
    items: list[msgspec.Raw] = []
    for item in page.items or ():
        try:
            meta = read_head(item).metadata
        except ObjectError:  # whoever decodes it says what is wrong with it
            items.append(item)
            continue
        key = f"{meta.namespace}/{meta.name}"
        if key not in seen:
            seen.add(key)
            items.append(item)
    return RawPage(metadata=page.metadata, items=items)
