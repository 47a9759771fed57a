"""Lists: at which resource version, selected how, and page by page."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from bayplan.embedded.apiserver.errors import ApiError, bad_request, expired, too_large_version
from bayplan.embedded.apiserver.rest.selectors import Selector
from bayplan.embedded.apiserver.schema.syntax import syntax_problem
from bayplan.embedded.apiserver.store.entry import Entry
from bayplan.embedded.apiserver.store.store import Store


class ListOptions(NamedTuple):
    """How to list."""

    resource_version: str = ""
    match: str = ""
    limit: int = 0
    token: str = ""


class Page(NamedTuple):
    """What a list gives: the entries, the version they are of, and how to go on."""

    entries: Sequence[Entry]
    revision: int
    token: str = ""
    remaining: int | None = None


class _Position(msgspec.Struct):
    revision: int
    namespace: str
    name: str


def list_page(store: Store, storage: str, selector: Selector, options: ListOptions) -> Page:
    """One page of the objects that a selector selects."""
    position = _read_token(options)
    revision, there = _pinned(store, storage, selector, options, position)
    entries = there
    if not selector.everything:
        entries = [entry for entry in there if selector.matches(entry)]
    if not options.limit or len(entries) < options.limit:
        return Page(entries, revision)
    return _cut(store, selector, options, Page(entries, revision), there)


def _pinned(
    store: Store, storage: str, selector: Selector, options: ListOptions, position: _Position | None
) -> tuple[int, Sequence[Entry]]:
    """The revision to list at, and what was there then (after the position, if paging)."""
    current = store.list(storage, selector.namespace)
    revision = position.revision if position else _exact_revision(store, options)
    if revision == store.revision:
        entries: Sequence[Entry] | None = current
    else:
        entries = store.snapshots.get((storage, selector.namespace, revision))
    if entries is None:
        raise expired("The provided continue parameter or resource version is too old")
    if position:
        after = (position.namespace, position.name)
        entries = [entry for entry in entries if entry.key[1:] > after]
    return revision, entries


def _exact_revision(store: Store, options: ListOptions) -> int:
    try:
        asked = parse_version(options.resource_version)
    except ApiError as problem:
        raise bad_request(f"invalid resource version: {problem}") from problem
    if asked > store.revision:
        raise too_large_version(asked, store.revision)
    exact = options.match == "Exact" or (not options.match and options.limit > 0)
    return asked if exact and asked > 0 else store.revision


def parse_version(text: str) -> int:
    """A resource version as a number; "" is 0."""
    if text and not (text.isascii() and text.isdigit() and len(text) < 20):
        why = f'strconv.ParseUint: parsing "{text}": invalid syntax'
        raise ApiError(500, "", f'resourceVersion: Invalid value: "{text}": {why}')
    return int(text or 0)


def _cut(
    store: Store,
    selector: Selector,
    options: ListOptions,
    page: Page,
    there: Sequence[Entry],
) -> Page:
    """A full page; there is another if anything follows it, whether it is selected or not."""
    shown, rest = page.entries[: options.limit], len(page.entries) - options.limit
    last = shown[-1].key
    if there[-1].key == last:
        return page
    if page.revision == store.revision:
        listed = store.list(last.storage, selector.namespace)
        store.snapshots.keep((last.storage, selector.namespace, page.revision), listed)
    token = _write_token(_Position(page.revision, last.namespace, last.name))
    return Page(shown, page.revision, token, rest if selector.everything else None)


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


def _bad_token(why: str) -> ApiError:
    return bad_request(f"invalid continue token: continue key is not valid: {why}")
