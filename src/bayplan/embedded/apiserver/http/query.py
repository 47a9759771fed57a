"""Query strings: the options that a client may give with a request."""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import parse_qsl

from bayplan.embedded.apiserver.errors import Cause, bad_request, invalid_options
from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.kinds.fields import ALWAYS
from bayplan.embedded.apiserver.kinds.model import Kind
from bayplan.embedded.apiserver.kinds.views import kept_field
from bayplan.embedded.apiserver.request import DeleteOptions
from bayplan.embedded.apiserver.rest.listing import ListOptions
from bayplan.embedded.apiserver.rest.selectors import Selector, parse_fields, parse_labels
from bayplan.embedded.apiserver.rest.watching import WatchOptions
from bayplan.embedded.apiserver.validation.causes import bad_value, forbidden_field, not_supported

Query = dict[str, str]
_MOST_LIST = 2**31
_LONGEST_WATCH = 24 * 3600.0
_DEFAULT_WATCH = 1800.0
_MATCHES = ("", "Exact", "NotOlderThan")
_PROPAGATIONS = ("", "Orphan", "Background", "Foreground")
_VALIDATIONS = ("Ignore", "Warn", "Strict")


def parse_query(raw: bytes) -> Query:
    """A query string as a mapping; the first of equal names counts."""
    if not raw:
        return {}
    try:
        pairs = parse_qsl(raw.decode("latin-1"), keep_blank_values=True, max_num_fields=100)
    except ValueError as problem:
        raise bad_request(f"the query cannot be read: {problem}") from problem
    return dict(reversed(pairs))


def flag(query: Query, name: str) -> bool:
    """A boolean parameter."""
    return query.get(name, "").lower() in ("true", "1", "t")


def number(query: Query, name: str, default: int, most: int) -> int:
    """A whole number that is not negative."""
    text = query.get(name)
    if not text:
        return default
    if not (text.isascii() and text.isdigit() and int(text[:20]) <= most):
        raise bad_request(f"{name}: Invalid value: {text!r}: must be a number up to {most}")
    return int(text)


def selector(query: Query, kind: Kind, namespace: str, name: str = "") -> Selector:
    """Which objects a list, a watch or a collection's deletion is about."""
    fields = parse_fields(query.get("fieldSelector", ""), (*ALWAYS, *kind.fields))
    return Selector(
        namespace,
        name,
        parse_labels(query.get("labelSelector", "")),
        tuple(one._replace(key=kept_field(kind, one.key)) for one in fields),
    )


def list_options(query: Query) -> ListOptions:
    """How to list."""
    match, version = query.get("resourceVersionMatch", ""), query.get("resourceVersion", "")
    problem = _match_problem(match, version)
    if problem is not None:
        raise invalid_options("ListOptions", problem)
    limit = number(query, "limit", 0, _MOST_LIST)
    return ListOptions(version, match, limit, query.get("continue", ""))


def _match_problem(match: str, version: str) -> Cause | None:
    field = "resourceVersionMatch"
    if match not in _MATCHES:
        return not_supported(field, match, _MATCHES[1:])
    if match and not version:
        return forbidden_field(field, f"{field} is forbidden unless resourceVersion is provided")
    if match == "Exact" and version == "0":
        return forbidden_field(field, f'{field} "Exact" is forbidden for resourceVersion "0"')
    return None


def watch_options(query: Query, select: Selector) -> WatchOptions:
    """How to watch."""
    timeout = number(query, "timeoutSeconds", int(_DEFAULT_WATCH), 2**31)
    initial = query.get("sendInitialEvents")
    return WatchOptions(
        selector=select,
        resource_version=query.get("resourceVersion", ""),
        bookmarks=flag(query, "allowWatchBookmarks"),
        send_initial=None if initial is None else flag(query, "sendInitialEvents"),
        match=query.get("resourceVersionMatch", ""),
        timeout=min(float(timeout) or _DEFAULT_WATCH, _LONGEST_WATCH),
    )


class WriteOptions(NamedTuple):
    """What a write's query may say."""

    dry_run: bool
    field_manager: str
    field_validation: str
    force: bool


def write_options(query: Query) -> WriteOptions:
    """How to write."""
    if not query:
        return _DEFAULT_WRITE
    validation = query.get("fieldValidation") or "Warn"
    if validation not in _VALIDATIONS:
        problem = not_supported("fieldValidation", validation, ("", *_VALIDATIONS))
        raise invalid_options("CreateOptions", problem)
    manager = query.get("fieldManager", "")
    if len(manager) > 128 or not manager.isprintable():
        problem = bad_value("fieldManager", manager, "must be printable and at most 128 long")
        raise invalid_options("PatchOptions", problem)
    return WriteOptions(dry_run(query.get("dryRun", "")), manager, validation, flag(query, "force"))


_DEFAULT_WRITE = WriteOptions(False, "", "Warn", False)


def dry_run(text: str) -> bool:
    """`All` or nothing."""
    if text not in ("", "All"):
        raise invalid_options("PatchOptions", not_supported("dryRun", [text], ("All",)))
    return text == "All"


def delete_options(query: Query, body: JsonObject) -> DeleteOptions:
    """How to delete: the body's options, else the query's."""
    grace = body.get("gracePeriodSeconds")
    if grace is None and query.get("gracePeriodSeconds"):
        grace = number(query, "gracePeriodSeconds", 30, 2**31)
    propagation = body.get("propagationPolicy") or query.get("propagationPolicy", "")
    orphan = body.get("orphanDependents")
    if orphan is not None and not propagation:
        propagation = "Orphan" if orphan else "Background"
    preconditions = body.get("preconditions") or {}
    if not isinstance(preconditions, dict) or not isinstance(grace, int | None):
        raise bad_request("the delete options cannot be read")
    if grace is not None and not -(2**63) <= grace < 2**63:
        raise bad_request("gracePeriodSeconds is not a number of seconds")
    if propagation not in _PROPAGATIONS:
        problem = not_supported("propagationPolicy", propagation, (*_PROPAGATIONS[1:], "nil"))
        raise invalid_options("DeleteOptions", problem)
    return DeleteOptions(
        grace,
        propagation,
        str(preconditions.get("uid") or ""),
        str(preconditions.get("resourceVersion") or ""),
        dry_run(",".join(map(str, body.get("dryRun") or ()))),
    )
