"""Request bodies: size limit, timeout, decoding, and reading as objects of a kind."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import cache, lru_cache
from typing import Any

from bayplan.embedded.apiserver.errors import (
    StatusError,
    bad_request,
    invalid,
    too_large,
    unsupported_media_type,
)
from bayplan.embedded.apiserver.jsontypes import MAX_DEPTH, JsonObject, JsonValue, decode, excess
from bayplan.embedded.apiserver.kinds.catalog import Catalog
from bayplan.embedded.apiserver.kinds.model import ServedKind
from bayplan.embedded.apiserver.rest.conformance import kind_problem
from bayplan.embedded.apiserver.schema.syntax import syntax_problem
from bayplan.embedded.apiserver.schema.unmarshal import TYPE_META, described
from bayplan.embedded.apiserver.validation.causes import bad_value

BODY_BYTES = 3 * 1024 * 1024
BODY_SECONDS = 30.0
_MAX_EVENTS = 50_000
"""Limit of YAML events in a body: parsing takes about ten times as long as JSON."""
_MAX_NUMBER_LENGTH = 100
_MISTAGGED = (LookupError, AttributeError)
"""Errors raised for values that do not match their YAML tags."""
PROTOBUF = "application/vnd.kubernetes.protobuf"
ACCEPTED = ("application/json", "application/yaml", PROTOBUF)

Receive = Callable[[], Awaitable[Any]]


class ClientDisconnected(Exception):  # noqa: N818 - nothing is wrong here
    """The client disconnected before its request was complete."""


class UnreadableBody(Exception):  # noqa: N818 - callers say what it means
    """A body that cannot be parsed in its content type."""


class BodyTooDeep(UnreadableBody):
    """A body whose values are nested too deeply."""


async def read_body(receive: Receive) -> bytes:
    """Return the whole body; 413 or 408 above the limits of size and time."""
    try:
        async with asyncio.timeout(BODY_SECONDS):
            return await collect(receive)
    except TimeoutError as problem:
        message = "the request's body did not arrive in time"
        raise StatusError(408, "Timeout", message) from problem


async def collect(receive: Receive) -> bytes:
    """Return the whole body, without a time limit."""
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnected
        part: bytes = message.get("body", b"")
        size += len(part)
        if size > BODY_BYTES:
            raise too_large(BODY_BYTES)
        parts.append(part)
        if not message.get("more_body"):
            return b"".join(parts) if len(parts) > 1 else part


def exact_media_type(content_type: bytes | None) -> str:
    """Return a content type without parameters, in its original case."""
    return (content_type or b"").decode("latin-1").partition(";")[0].strip()


@lru_cache(64)
def media_type(content_type: bytes | None) -> str:
    """Return a content type without parameters, in lower case."""
    return (content_type or b"").decode("latin-1").partition(";")[0].strip().lower()


def decode_value(body: bytes, content_type: str) -> JsonValue:
    """Decode a body of any accepted content type; UnreadableBody if it is invalid."""
    if content_type in ("", "application/json"):
        value = decode_json(body)
    elif content_type == "application/yaml":
        value = decode_yaml(body)
    elif content_type == PROTOBUF:
        value = decode_protobuf(body)
    else:
        raise unsupported_media_type(ACCEPTED)
    if problem := excess(value, body):
        raise (BodyTooDeep if "depth" in problem else UnreadableBody)(problem)
    return value


def decode_json(body: bytes) -> JsonValue:
    """Decode a JSON body."""
    try:
        return decode(body)
    except (ValueError, RecursionError) as found:
        problem = syntax_problem(body)
        if isinstance(found, RecursionError) and not problem:
            raise BodyTooDeep("exceeded max depth") from found
        if problem:
            raise UnreadableBody(problem) from found
        return _mended(body)


def _mended(body: bytes) -> JsonValue:
    """Replace invalid UTF-8 in a JSON body."""
    try:
        return _without_halves(json.loads(body.decode("utf-8", "replace")))
    except (ValueError, RecursionError) as problem:
        raise UnreadableBody(str(problem)) from problem


def _without_halves(value: JsonValue) -> JsonValue:
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, list):
        return [_without_halves(item) for item in value]
    if isinstance(value, dict):
        return {_without_halves(key): _without_halves(item) for key, item in value.items()}
    return value


def decode_yaml(body: bytes) -> JsonValue:
    """Decode a YAML body of plain JSON values; JSON is valid YAML and the usual case."""
    with suppress(ValueError, RecursionError):
        return decode(body)
    import yaml  # noqa: PLC0415 - YAML bodies are rare

    try:
        text = body.decode("utf-8")
        if _has_aliases(text):
            raise UnreadableBody("the body uses YAML aliases, which are not accepted")
        return _as_json(yaml.load(text, Loader=_loader()))  # noqa: S506 - a safe loader
    except yaml.MarkedYAMLError as problem:
        raise UnreadableBody(_yaml_problem(problem)) from problem
    except (yaml.YAMLError, ValueError, RecursionError, TypeError, *_MISTAGGED) as problem:
        raise UnreadableBody(f"yaml: {problem}") from problem


@cache
def _loader() -> Any:
    """Return a loader for YAML 1.1 as Kubernetes reads it: `y`/`n` are booleans, times strings."""
    import yaml  # noqa: PLC0415 - YAML bodies are rare

    class Loader(yaml.CSafeLoader):
        yaml_implicit_resolvers = {
            letter: [pair for pair in pairs if pair[0] != "tag:yaml.org,2002:timestamp"]
            for letter, pairs in yaml.CSafeLoader.yaml_implicit_resolvers.items()
        }

    boolean = re.compile(r"(?:y|Y|n|N)\Z")
    Loader.add_implicit_resolver("tag:yaml.org,2002:bool", boolean, list("yYnN"))
    truths = {"y": True, "yes": True, "on": True, "true": True}
    Loader.add_constructor(
        "tag:yaml.org,2002:bool", lambda _, node: truths.get(node.value.lower(), False)
    )
    return Loader


def _as_json(value: Any) -> JsonValue:
    """Convert a YAML value to JSON."""
    if isinstance(value, dict):
        return {_as_key(key): _as_json(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_as_json(item) for item in value]
    if isinstance(value, str | bool | int | float) or value is None:
        return value
    raise TypeError(f"{type(value).__name__} cannot be JSON")


def _as_key(key: Any) -> str:
    if isinstance(key, bool):
        return "true" if key else "false"
    if isinstance(key, str | int | float):
        return str(key)
    raise TypeError(f"unsupported map key: {key!r}")


def _yaml_problem(problem: Any) -> str:
    """Return the error as Kubernetes' parser words it, with its line numbers."""
    mark = problem.problem_mark or problem.context_mark
    where = f"line {mark.line + 1}: " if mark is not None and mark.line else ""
    return f"yaml: {where}{problem.problem or 'unknown problem parsing YAML content'}"


def _has_aliases(text: str) -> bool:
    """Return whether a document has aliases, by which a small one can become huge.

    ValueError if it is nested so deeply, or is so large, that parsing would take too long or crash
    the process: the event parser does not recurse, but the constructor of values does.
    """
    import yaml  # noqa: PLC0415 - YAML bodies are rare

    depth = 0
    for number, event in enumerate(yaml.parse(text, Loader=yaml.CSafeLoader)):
        if isinstance(event, yaml.AliasEvent):
            return True
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        elif isinstance(event, yaml.ScalarEvent) and (event.implicit[0] or event.tag):
            _refuse_long_number(event.value)
        if depth > MAX_DEPTH or number > _MAX_EVENTS:
            raise ValueError("exceeded max depth" if depth > MAX_DEPTH else "too many values")
    return False


def _refuse_long_number(scalar: str) -> None:
    """Refuse numbers of thousands of digits, which take long to convert."""
    if len(scalar) > _MAX_NUMBER_LENGTH and not scalar.lstrip("+-.0123456789_:"):
        raise ValueError("a number is too long")


def decode_protobuf(body: bytes) -> JsonValue:
    """Decode a protobuf body of a built-in kind."""
    from bayplan.embedded.apiserver.schema import protobuf, types  # noqa: PLC0415 - Go clients only

    try:
        api_version, kind, raw = protobuf.open_envelope(body)
        group = api_version.rpartition("/")[0]
        type_ = types.root_type(group, kind) or types.root_type("meta", kind)
        if type_ is None:
            raise unsupported_media_type(ACCEPTED)
        obj = protobuf.decode_message(raw, type_)
    except protobuf.WireError as problem:
        raise UnreadableBody(str(problem)) from problem
    return {"kind": kind, "apiVersion": api_version, **obj}


_SHOWN = 30


def read_object(body: bytes, media_type: str, kind: ServedKind, catalog: Catalog) -> JsonObject:
    """Decode a body as an object of a kind."""
    try:
        obj = typed(decode_value(body, media_type))
    except UnreadableBody as found:
        detail = str(found)
        if media_type in ("", "application/json"):
            detail = f"couldn't get version/kind; json parse error: {found}"
        raise _unrecognized(kind, detail, body) from found
    _check_custom_kind(obj, kind)
    problem = kind_problem(obj, kind, catalog)
    if problem:
        raise bad_request(problem)
    return obj


def _check_custom_kind(obj: JsonObject, kind: ServedKind) -> None:
    given = obj.get("kind") or kind.kind
    if not kind.custom or obj.get("apiVersion") != kind.api_version or given == kind.kind:
        return
    meta = obj.get("metadata")
    name = meta.get("name") if isinstance(meta, dict) else ""
    problem = bad_value("kind", given, f"must be {kind.kind}")
    raise invalid(kind.group, given, name if isinstance(name, str) else "", [problem])


def typed(value: JsonValue) -> JsonObject:
    """Return a value that has string `kind` and `apiVersion`, if any; UnreadableBody otherwise."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        actual = described(value)
        raise UnreadableBody(f"json: cannot unmarshal {actual} into Go value of type {TYPE_META}")
    for name, item in value.items():
        if name in ("apiVersion", "kind") and not isinstance(item, str | None):
            actual = f"json: cannot unmarshal {described(item)} into Go struct field .{name}"
            raise UnreadableBody(f"{actual} of type string")
    return value


def _unrecognized(kind: ServedKind, detail: str, body: bytes) -> StatusError:
    what = f"the object provided is unrecognized (must be of type {kind.kind})"
    return bad_request(f"{what}: {detail} ({_summary(body)})")


def _summary(body: bytes) -> str:
    if not body:
        return "<empty>"
    more = " ..." if len(body) > _SHOWN else ""
    begun = body[:_SHOWN]
    return (begun.decode("utf-8", "replace") if body[:1] == b"{" else begun.hex()) + more
