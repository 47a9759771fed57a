"""Lists, at a resource version and page by page, and watches.

An object that begins to match a selector is ADDED for that watcher, one that stops matching is
DELETED with the content of its last matching version, as in Kubernetes.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import msgspec

from bayplan.embedded.apiserver.errors import (
    StatusError,
    bad_request,
    expired,
    invalid_options,
    too_large_version,
)
from bayplan.embedded.apiserver.jsontypes import encode
from bayplan.embedded.apiserver.kinds.model import ServedKind
from bayplan.embedded.apiserver.rest.selectors import SelectionPredicate
from bayplan.embedded.apiserver.schema.syntax import syntax_problem
from bayplan.embedded.apiserver.store.entry import StoreEntry
from bayplan.embedded.apiserver.store.store import ApiObjectStore
from bayplan.embedded.apiserver.store.watchcache import WatchCache, WatchCacheEvent, event_line
from bayplan.embedded.apiserver.validation.causes import forbidden_field


class ListOptions(NamedTuple):
    """Options of a list."""

    resource_version: str = ""
    match: str = ""
    limit: int = 0
    token: str = ""


class ListPage(NamedTuple):
    """One page of a list: the entries, their resource version, and the continue token."""

    entries: Sequence[StoreEntry]
    revision: int
    token: str = ""
    remaining: int | None = None


class _Position(msgspec.Struct):
    revision: int
    namespace: str
    name: str


def list_page(
    store: ApiObjectStore, storage: str, selector: SelectionPredicate, options: ListOptions
) -> ListPage:
    """Return one page of the objects that match a selector."""
    position = _read_token(options)
    revision, there = _pinned(store, storage, selector, options, position)
    entries = there
    if not selector.is_everything:
        entries = [entry for entry in there if selector.matches(entry)]
    if not options.limit or len(entries) < options.limit:
        return ListPage(entries, revision)
    return _cut(store, selector, options, ListPage(entries, revision), there)


def _pinned(
    store: ApiObjectStore,
    storage: str,
    selector: SelectionPredicate,
    options: ListOptions,
    position: _Position | None,
) -> tuple[int, Sequence[StoreEntry]]:
    """Return the revision to list at, and the entries at that revision (after the position)."""
    current = store.list(storage, selector.namespace)
    revision = position.revision if position else _exact_revision(store, options)
    if revision == store.revision:
        entries: Sequence[StoreEntry] | None = current
    else:
        entries = store.snapshots.get((storage, selector.namespace, revision))
    if entries is None:
        raise expired("The provided continue parameter or resource version is too old")
    if position:
        after = (position.namespace, position.name)
        entries = [entry for entry in entries if entry.key[1:] > after]
    return revision, entries


def _exact_revision(store: ApiObjectStore, options: ListOptions) -> int:
    try:
        requested = parse_version(options.resource_version)
    except StatusError as problem:
        raise bad_request(f"invalid resource version: {problem}") from problem
    if requested > store.revision:
        raise too_large_version(requested, store.revision)
    exact = options.match == "Exact" or (not options.match and options.limit > 0)
    return requested if exact and requested > 0 else store.revision


def parse_version(text: str) -> int:
    """Return a resource version as a number; "" is 0."""
    if text and not (text.isascii() and text.isdigit() and len(text) < 20):
        detail = f'strconv.ParseUint: parsing "{text}": invalid syntax'
        raise StatusError(500, "", f'resourceVersion: Invalid value: "{text}": {detail}')
    return int(text or 0)


def _cut(
    store: ApiObjectStore,
    selector: SelectionPredicate,
    options: ListOptions,
    page: ListPage,
    there: Sequence[StoreEntry],
) -> ListPage:
    """Return a page of at most the limit; it continues if any entry follows, matching or not."""
    shown, rest = page.entries[: options.limit], len(page.entries) - options.limit
    last = shown[-1].key
    if there[-1].key == last:
        return page
    if page.revision == store.revision:
        listed = store.list(last.storage, selector.namespace)
        store.snapshots.keep((last.storage, selector.namespace, page.revision), listed)
    token = _write_token(_Position(page.revision, last.namespace, last.name))
    return ListPage(shown, page.revision, token, rest if selector.is_everything else None)


def _write_token(position: _Position) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode(position)).decode()


def _read_token(options: ListOptions) -> _Position | None:
    if not options.token:
        return None
    if options.resource_version not in ("", "0"):
        raise bad_request("specifying resource version is not allowed when using continue")
    try:
        token = base64.urlsafe_b64decode(options.token + "=" * (-len(options.token) % 4))
    except (ValueError, binascii.Error) as problem:
        raise _bad_token("illegal base64 data at input byte 0") from problem
    try:
        return msgspec.json.decode(token, type=_Position)
    except ValueError as problem:
        raise _bad_token(syntax_problem(token) or str(problem)) from problem


def _bad_token(detail: str) -> StatusError:
    return bad_request(f"invalid continue token: continue key is not valid: {detail}")


BOOKMARK_SECONDS = 60.0
_BATCH = 256 * 1024

Render = Callable[[StoreEntry], bytes]
"""Encodes an object for a watcher."""


@dataclass(slots=True)
class WatchOptions:
    """Options of a watch."""

    selector: SelectionPredicate
    resource_version: str = ""
    bookmarks: bool = False
    send_initial: bool | None = None
    match: str = ""
    timeout: float = 1800.0
    bookmark_seconds: float = BOOKMARK_SECONDS
    render: Render | None = None


class Watcher:
    """One watch: its position in the watch cache, and its selector."""

    def __init__(
        self,
        store: ApiObjectStore,
        kind: ServedKind,
        options: WatchOptions,
        now: Callable[[], float],
    ) -> None:
        self._store = store
        self._kind = kind
        self._options = options
        self._now = now
        self._cache: WatchCache = store.watch_cache(kind.storage)
        self._initial = _wants_initial(options)
        self._sent_revision = self._start()
        self._position = self._cache.position_after(self._sent_revision)
        self._listed = store.list(kind.storage, options.selector.namespace) if self._initial else ()
        self._bookmark_due = 0.0

    def _start(self) -> int:
        """Return the revision up to which the watcher has everything after its initial list."""
        requested = parse_version(self._options.resource_version)
        if requested > self._store.revision:
            raise too_large_version(requested, self._store.revision)
        return self._store.revision if self._initial or not requested else requested

    async def chunks(self) -> AsyncIterator[bytes]:
        """Yield pieces of the stream, each of whole lines, until the timeout.

        Pieces are made when they are read, so that a slow reader costs little, and the last
        bookmark has the revision of what was sent, not of what has happened since.
        """
        deadline = self._now() + self._options.timeout
        self._bookmark_due = self._now() + self._options.bookmark_seconds
        for chunk in _batched(self._first()):
            yield chunk
            await asyncio.sleep(0)  # let others run during a long list
        while not self._store.closing and (left := deadline - self._now()) > 0:
            pause = min(left, max(0.0, self._bookmark_due - self._now()))
            await self._cache.wait(self._position, pause)
            for chunk in _batched(self._changes()):
                yield chunk
        if self._options.bookmarks:
            yield self._bookmark(self._sent_revision)

    def _first(self) -> Iterator[bytes]:
        selector, entries = self._options.selector, self._listed
        self._listed = ()
        for entry in entries:
            if selector.matches(entry):
                yield event_line("ADDED", self._shown(entry))
        if self._initial and self._options.send_initial and self._options.bookmarks:
            yield self._bookmark(self._sent_revision, ended=True)

    def _changes(self) -> Iterator[bytes]:
        changes, revision = self._cache.read(self._position), self._store.revision
        self._position += len(changes)
        for change in changes:
            line = self._line(change)
            if line is not None:
                yield line
        self._sent_revision = revision
        if self._now() >= self._bookmark_due:
            self._bookmark_due = self._now() + self._options.bookmark_seconds
            if self._options.bookmarks:
                yield self._bookmark(revision)

    def _line(self, change: WatchCacheEvent) -> bytes | None:
        event_type = seen_as(change, self._options.selector)
        if event_type is None:
            return None
        if self._options.render is None:
            return change.line(event_type)
        return event_line(event_type, self._options.render(change.shown(event_type)))

    def _shown(self, entry: StoreEntry) -> bytes:
        return entry.data if self._options.render is None else self._options.render(entry)

    def _bookmark(self, revision: int, *, ended: bool = False) -> bytes:
        meta: dict[str, object] = {"resourceVersion": str(revision), "creationTimestamp": None}
        if ended:
            meta["annotations"] = {"k8s.io/initial-events-end": "true"}
        kind = self._kind
        bookmark = {"kind": kind.kind, "apiVersion": kind.api_version, "metadata": meta}
        return event_line("BOOKMARK", encode(bookmark))


def _wants_initial(options: WatchOptions) -> bool:
    field = "resourceVersionMatch"
    if options.send_initial is not None:
        if options.match != "NotOlderThan":
            detail = f"sendInitialEvents requires setting {field} to NotOlderThan"
            raise invalid_options("ListOptions", forbidden_field(field, detail))
        return options.send_initial
    if options.match:
        detail = f"{field} is forbidden for watch unless sendInitialEvents is provided"
        raise invalid_options("ListOptions", forbidden_field(field, detail))
    return options.resource_version in ("", "0")


def seen_as(change: WatchCacheEvent, selector: SelectionPredicate) -> str | None:
    """Return the event that a watcher with a selector sees of a change, or None."""
    if selector.is_everything and not selector.namespace:
        return change.type
    before = change.previous is not None and selector.matches(change.previous)
    after = not change.deleted and selector.matches(change.entry)
    if before and after:
        return "MODIFIED"
    if before:
        return "DELETED"
    return "ADDED" if after else None


def _batched(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Join the lines into pieces of a bounded size."""
    pending: list[bytes] = []
    size = 0
    for line in lines:
        pending.append(line)
        size += len(line)
        if size >= _BATCH:
            yield b"".join(pending)
            pending, size = [], 0
    if pending:
        yield b"".join(pending)
