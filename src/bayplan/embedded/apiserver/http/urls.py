"""Parsing of URLs: the resource in the path, and the options in the query string.

The path is split before it is decoded, so an encoded slash never becomes a path separator.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import parse_qsl, unquote

from bayplan.embedded.apiserver.errors import FieldCause, bad_request, invalid_options, no_such_path
from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.kinds.catalog import stored_field
from bayplan.embedded.apiserver.kinds.model import ServedKind
from bayplan.embedded.apiserver.patch.patches import APPLY_PATCH
from bayplan.embedded.apiserver.request import DeletionOptions
from bayplan.embedded.apiserver.rest.reads import ListOptions, WatchOptions
from bayplan.embedded.apiserver.rest.selectors import SelectionPredicate, parse_fields, parse_labels
from bayplan.embedded.apiserver.validation.causes import (
    bad_value,
    forbidden_field,
    not_supported,
    required,
    too_long,
)


class RequestInfo(NamedTuple):
    """A parsed path."""

    path: str
    is_resource: bool = False
    group: str = ""
    version: str = ""
    namespace: str = ""
    plural: str = ""
    name: str = ""
    subresource: str = ""


_NAMESPACE_SUBRESOURCES = ("status", "finalize")


@lru_cache(512)
def parse_path(raw: bytes) -> RequestInfo:
    """Parse a path; 404 if it is outside of the API."""
    text = raw.decode("ascii", "replace")
    if not text.startswith("/"):
        raise no_such_path()
    parts = [_decoded(part) for part in text.split("/")[1:]]
    if parts[-1] == "":
        parts.pop()
    if "" in parts:
        raise no_such_path()
    path = "/" + "/".join(parts)
    if parts[:1] == ["api"] and len(parts) > 2:
        return _resource(path, "", parts[1], parts[2:])
    if parts[:1] == ["apis"] and len(parts) > 3:
        return _resource(path, parts[1], parts[2], parts[3:])
    return RequestInfo(path)


def _decoded(part: str) -> str:
    if "%" not in part:
        return part
    decoded = unquote(part, errors="replace")
    if "/" in decoded or "\x00" in decoded or decoded in (".", ".."):
        raise no_such_path()
    return decoded


def _resource(path: str, group: str, version: str, parts: list[str]) -> RequestInfo:
    namespace = ""
    if parts[0] == "namespaces" and len(parts) > 1:
        namespace = parts[1]
        if len(parts) > 2 and not (len(parts) == 3 and parts[2] in _NAMESPACE_SUBRESOURCES):
            parts = parts[2:]
        else:
            return RequestInfo(path, True, group, version, "", *_padded(parts))
    return RequestInfo(path, True, group, version, namespace, *_padded(parts))


def _padded(parts: list[str]) -> tuple[str, str, str]:
    plural, name, subresource, *rest = (*parts, "", "")[: max(3, len(parts))]
    return plural, name, "/".join((subresource, *rest)) if rest else subresource


Query = dict[str, str]
_MAX_LIST = 2**31
_MAX_WATCH_SECONDS = 24 * 3600.0
_DEFAULT_WATCH = 1800.0
_MATCHES = ("", "Exact", "NotOlderThan")
_PROPAGATIONS = ("Foreground", "Background", "Orphan")
_VALIDATIONS = ("Ignore", "Strict", "Warn")
_MAX_NUMBER_LENGTH = 20


def parse_query(raw: bytes) -> Query:
    """Parse a query string; the first of equal names counts."""
    if not raw:
        return {}
    try:
        pairs = parse_qsl(raw.decode("latin-1"), keep_blank_values=True, max_num_fields=100)
    except ValueError as problem:
        raise bad_request(f"the query cannot be read: {problem}") from problem
    return dict(reversed(pairs))


def flag(query: Query, name: str) -> bool:
    """Return a boolean parameter: everything but `false` and `0` is true."""
    text = query.get(name)
    return text is not None and text != "0" and text.lower() != "false"


def number(query: Query, name: str, default: int) -> int:
    """Return an integer parameter."""
    text = query.get(name)
    if text is None:
        return default
    if not re.fullmatch(r"[+-]?[0-9]+", text):
        raise bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax')
    if len(text) > _MAX_NUMBER_LENGTH or not -(2**63) <= int(text) < 2**63:
        raise bad_request(f'strconv.ParseInt: parsing "{text}": value out of range')
    return int(text)


def selector(query: Query, kind: ServedKind, namespace: str, name: str = "") -> SelectionPredicate:
    """Return the predicate of a list, a watch or a deletecollection."""
    labels = parse_labels(query.get("labelSelector", ""))
    fields = parse_fields(query.get("fieldSelector", ""), kind)
    return SelectionPredicate(
        namespace,
        name,
        labels,
        tuple(one._replace(key=stored_field(kind, one.key)) for one in fields),
    )


def list_options(query: Query) -> ListOptions:
    """Return the options of a list."""
    match, version = query.get("resourceVersionMatch", ""), query.get("resourceVersion", "")
    limit = number(query, "limit", 0)
    found = _list_problems(query, match, version)
    if found:
        raise invalid_options("ListOptions", *found)
    return ListOptions(version, match, max(0, min(limit, _MAX_LIST)), query.get("continue", ""))


def _list_problems(query: Query, match: str, version: str) -> list[FieldCause]:
    field, found = "resourceVersionMatch", []
    if match and not version:
        found.append(
            forbidden_field(field, f"{field} is forbidden unless resourceVersion is provided")
        )
    if match and query.get("continue"):
        found.append(forbidden_field(field, f"{field} is forbidden when continue is provided"))
    if match not in _MATCHES:
        found.append(not_supported(field, match, (*_MATCHES[1:], "")))
    if match == "Exact" and version == "0":
        detail = f'{field} "exact" is forbidden for resourceVersion "0"'
        found.append(forbidden_field(field, detail))
    if "sendInitialEvents" in query:
        detail = "sendInitialEvents is forbidden for list"
        found.append(forbidden_field("sendInitialEvents", detail))
    return found


def watch_options(query: Query, select: SelectionPredicate) -> WatchOptions:
    """Return the options of a watch."""
    timeout = max(0, number(query, "timeoutSeconds", int(_DEFAULT_WATCH)))
    initial = query.get("sendInitialEvents")
    return WatchOptions(
        selector=select,
        resource_version=query.get("resourceVersion", ""),
        bookmarks=flag(query, "allowWatchBookmarks"),
        send_initial=None if initial is None else flag(query, "sendInitialEvents"),
        match=query.get("resourceVersionMatch", ""),
        timeout=min(float(timeout) or _DEFAULT_WATCH, _MAX_WATCH_SECONDS),
    )


class WriteOptions(NamedTuple):
    """The options of a write in its query."""

    dry_run: bool
    field_manager: str
    field_validation: str
    force: bool


def write_options(query: Query, verb: str, content_type: str = "") -> WriteOptions:
    """Return the options of a write; 422 if they are invalid."""
    if verb not in _OPTIONS or not (query or content_type == APPLY_PATCH):
        return _DEFAULT_WRITE
    manager, validation = query.get("fieldManager", ""), query.get("fieldValidation") or "Warn"
    found = _force_problems(query, manager, content_type) if verb == "patch" else []
    found += _manager_problems(manager) + _dry_run_problems(_dry_runs(query))
    if validation not in _VALIDATIONS:
        found.append(not_supported("fieldValidation", validation, ("", *_VALIDATIONS)))
    if found:
        raise invalid_options(_OPTIONS[verb], *found)
    return WriteOptions(bool(_dry_runs(query)), manager, validation, flag(query, "force"))


_DEFAULT_WRITE = WriteOptions(False, "", "Warn", False)
_OPTIONS = {"create": "CreateOptions", "update": "UpdateOptions", "patch": "PatchOptions"}


def _force_problems(query: Query, manager: str, content_type: str) -> list[FieldCause]:
    if content_type == APPLY_PATCH:
        return [] if manager else [required("fieldManager", "is required for apply patch")]
    if "force" not in query:
        return []
    return [forbidden_field("force", "may not be specified for non-apply patch")]


def _manager_problems(manager: str) -> list[FieldCause]:
    long = [too_long("fieldManager", 128)] if len(manager.encode()) > 128 else []
    return long + [
        bad_value("fieldManager", manager, f"invalid character {_code(letter)} (at position {at})")
        for at, letter in enumerate(manager)
        if not letter.isprintable()
    ]


def _code(letter: str) -> str:
    return f"U+{ord(letter):04X}"


def _dry_runs(query: Query) -> list[str]:
    return [query["dryRun"]] if "dryRun" in query else []


def _dry_run_problems(requested: list[str]) -> list[FieldCause]:
    """Accept only `All`."""
    return (
        []
        if all(one == "All" for one in requested)
        else [not_supported("dryRun", requested, ("All",))]
    )


def delete_options(query: Query, body: JsonObject | None) -> DeletionOptions:
    """Return the options of a delete: of the body if there is one, else of the query."""
    given = body if body is not None else _queried(query)
    propagation, orphan = given.get("propagationPolicy"), given.get("orphanDependents")
    dry_runs = given.get("dryRun") or []
    found = _propagation_problems(propagation, orphan) + _dry_run_problems(dry_runs)
    if found:
        raise invalid_options("DeleteOptions", *found)
    if orphan is not None:
        propagation = "Orphan" if orphan else "Background"
    preconditions = given.get("preconditions") or {}
    grace = given.get("gracePeriodSeconds")
    return DeletionOptions(
        None if grace is None else _grace(grace),
        propagation or "",
        preconditions.get("uid") or "",
        preconditions.get("resourceVersion") or "",
        bool(dry_runs),
    )


def _grace(requested: int) -> int:
    """Return the grace period; a negative one becomes the shortest."""
    return 1 if requested < 0 else requested


def _queried(query: Query) -> JsonObject:
    given: JsonObject = {"dryRun": _dry_runs(query)}
    if "gracePeriodSeconds" in query:
        given["gracePeriodSeconds"] = number(query, "gracePeriodSeconds", 0)
    if "orphanDependents" in query:
        given["orphanDependents"] = flag(query, "orphanDependents")
    if "propagationPolicy" in query:
        given["propagationPolicy"] = query["propagationPolicy"]
    return given


def _propagation_problems(propagation: str | None, orphan: bool | None) -> list[FieldCause]:
    found: list[FieldCause] = []
    field = "propagationPolicy"
    if propagation is not None and orphan is not None:
        detail = "orphanDependents and deletionPropagation cannot be both set"
        found.append(bad_value(field, propagation, detail))
    if propagation is not None and propagation not in _PROPAGATIONS:
        found.append(not_supported(field, propagation, (*_PROPAGATIONS, "nil")))
    return found
