"""Reads a cluster once, as a dump would have it: paged, validated, and only what is allowed.

Every list is of one moment. Lists begin one after another, those of kinds that refer to others
first, so that the objects they refer to are listed as well; their further pages are read
concurrently. What may not be listed is `unseen`; kinds that the cluster does not serve have no
objects.
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
from bayplan.kube.manifests import Collector, LoadResult, Progress, UnseenKind
from bayplan.kube.meta import KubeObject
from bayplan.observe.permissions import Kind, RequiredKinds, describe_unseen

ALL_AT_ONCE = 0
PAGE = 500
MAX_RESTARTS = 20
"""How often a list's continue token may expire before that is an error."""
MAX_EMPTY_PAGES = 20
"""How many pages in a row may have no new objects before that is an error."""


class NotAllowedError(Exception):
    """A vital kind may not be listed, so that there is no answer."""

    def __init__(self, unseen: UnseenKind) -> None:
        super().__init__(describe_unseen(unseen))
        kind = KINDS[unseen.kind]
        self.is_namespaced = kind.namespaced
        """Whether the kind might be listed in one namespace."""


async def read_once(
    client: Client,
    required: RequiredKinds,
    *,
    namespace: str = "",
    progress: Progress | None = None,
) -> LoadResult:
    """Read all objects of the required kinds; where only that namespace is allowed, its objects.

    NotAllowedError if a vital kind may not be listed at all.
    """
    reading = _Reading(client, required, namespace, progress or (lambda *_: None))
    try:
        with paused_collector():
            async with asyncio.TaskGroup() as tasks:
                # The lock is handed on in the order of the requests.
                found = [tasks.create_task(reading.one(kind)) for kind in reversed(required.kinds)]
    except ExceptionGroup as errors:
        raise errors.exceptions[0] from None
    whole = LoadResult()
    for task in reversed(found):
        whole.join(task.result())
    whole.read = frozenset(kind.__name__ for kind in required.kinds)
    return whole


@dataclass(slots=True)
class _Reading:
    """Lists in progress."""

    client: Client
    required: RequiredKinds
    namespace: str
    progress: Progress
    opening: asyncio.Lock = field(default_factory=asyncio.Lock)
    shares: dict[Kind, float] = field(default_factory=dict)
    seen: int = 0
    failed: bool = False

    async def one(self, kind: Kind) -> LoadResult:
        """Read all objects of a kind."""
        collector = Collector()
        like = KINDS[kind.__name__]
        async for page in self._pages(kind, collector.loaded.unseen):
            for item in page.items or ():
                collector.take(item, like)
            self._report(kind, len(collector.loaded.objects), page)
        self.shares[kind] = 1.0
        return collector.loaded

    async def _pages(self, kind: Kind, unseen: list[UnseenKind]) -> AsyncIterator[RawPage]:
        found = allowed_pages(self.client, kind, self.namespace, unseen)
        async with self.opening:
            # After one list has failed, no further list is begun.
            first = None if self.failed else await self._first(found, unseen)
        if first is not None:
            yield first
            async for page in found:
                yield page

    async def _first(
        self, found: AsyncIterator[RawPage], unseen: list[UnseenKind]
    ) -> RawPage | None:
        self.failed = True
        page = await anext(found, None)
        check_required(self.required, unseen)
        self.failed = False
        return page

    def _report(self, kind: Kind, count: int, page: RawPage) -> None:
        self.seen += len(page.items or ())
        left = page.metadata.remaining_item_count or 0
        self.shares[kind] = count / max(1, count + left)
        self.progress(resource_of(kind).plural, self.seen, self._share())

    def _share(self) -> float:
        return sum(self.shares.values()) / len(self.required.kinds)


def check_required(required: RequiredKinds, unseen: list[UnseenKind]) -> None:
    """Raise NotAllowedError if a vital kind could not be read at all."""
    for one in unseen:
        if not one.readable_namespace and KINDS[one.kind].type in required.vital:
            raise NotAllowedError(one)


async def allowed_pages(
    client: Client, kind: Kind, namespace: str, unseen: list[UnseenKind]
) -> AsyncIterator[RawPage]:
    """List all that is allowed of a kind: all namespaces, or that one alone. What is not allowed is
    added to `unseen`.
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
        unseen.append(UnseenKind(resource.kind, forbidden_message(error), but_in))
        if but_in:
            async for page in _of_one_namespace(client, resource, namespace, unseen):
                yield page


async def _of_one_namespace(
    client: Client, resource: Resource[KubeObject], namespace: str, unseen: list[UnseenKind]
) -> AsyncIterator[RawPage]:
    try:
        async for page in whole_list(client, resource, Selection(namespace)):
            yield page
    except ForbiddenError as error:
        unseen[-1] = UnseenKind(resource.kind, forbidden_message(error))


async def _is_served(client: Client, resource: Resource[KubeObject]) -> bool:
    """Whether the cluster serves the API group: RBAC refuses before the server looks for the
    resource, but discovery is open to all.
    """
    try:
        await client.raw(f"/apis/{resource.group}" if resource.group else "/api")
    except NotFoundError:
        return False
    except ForbiddenError:
        return True
    return True


def forbidden_message(error: ForbiddenError) -> str:
    """Return the server's message without the resource that it begins with."""
    message = error.status.message
    return (message.partition(" is forbidden: ")[2] or message)[:400]


async def whole_list(
    client: Client, resource: Resource[KubeObject], which: Selection
) -> AsyncIterator[RawPage]:
    """Yield all pages of a list. If its continue token expires, the rest is of a later moment."""
    token, seen, in_vain = "", set[str](), 0
    for attempt in range(MAX_RESTARTS):
        limit = ALL_AT_ONCE if attempt and not token else PAGE
        try:
            async for page in client.raw_pages(resource, which, limit=limit, token=token):
                left = _without_seen(page, seen)
                in_vain = 0 if left.items else in_vain + 1
                if in_vain > MAX_EMPTY_PAGES:
                    raise MalformedError(f"the list of {resource} has no end")
                yield left
        except GoneError as error:
            if attempt == MAX_RESTARTS - 1:
                raise
            token = error.status.metadata.continue_
        else:
            return


def _without_seen(page: RawPage, seen: set[str]) -> RawPage:
    """Return the page without the objects of earlier pages."""
    items: list[msgspec.Raw] = []
    for item in page.items or ():
        try:
            meta = read_head(item).metadata
        except ObjectError:  # the decoder reports the problem
            items.append(item)
            continue
        key = f"{meta.namespace}/{meta.name}"
        if key not in seen:
            seen.add(key)
            items.append(item)
    return RawPage(metadata=page.metadata, items=items)
