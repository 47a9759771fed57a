"""Request bodies: bounded, timed out, decoded, and read as objects of a kind."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import cache, lru_cache
from typing import Any

from bayplan.embedded.apiserver.errors import (
    ApiError,
    bad_request,
    invalid,
    too_large,
    unsupported_media_type,
)
from bayplan.embedded.apiserver.jsontypes import DEEPEST, JsonObject, JsonValue, decode, excess
from bayplan.embedded.apiserver.kinds.catalog import Catalog
from bayplan.embedded.apiserver.kinds.model import Kind
from bayplan.embedded.apiserver.rest.conformance import kind_problem
from bayplan.embedded.apiserver.schema.syntax import syntax_problem
from bayplan.embedded.apiserver.schema.unmarshal import TYPE_META, described
from bayplan.embedded.apiserver.validation.causes import bad_value

BODY_BYTES = 3 * 1024 * 1024
BODY_SECONDS = 30.0
_MOST_EVENTS = 50_000
"""Parts of a YAML body: reading it takes some ten times as long as JSON."""
_LONGEST_NUMBER = 100
_MISTAGGED = (LookupError, AttributeError)
"""What comes of values that are not what their YAML tags say."""
PROTOBUF = "application/vnd.kubernetes.protobuf"
ACCEPTED = ("application/json", "application/yaml", PROTOBUF)

Receive = Callable[[], Awaitable[Any]]


class Disconnected(Exception):  # noqa: N818 - nothing is wrong here
    """The client is gone; nobody waits for an answer."""


class Unreadable(Exception):  # noqa: N818 - callers say what it means
    """A body that is not in the format that it says it is in."""


class TooDeep(Unreadable):
    """A body whose values are nested more deeply than they are read."""


async def read_body(receive: Receive) -> bytes:
    """The whole body, if it comes in time and is not too large."""
    try:
        async with asyncio.timeout(BODY_SECONDS):
            return await collect(receive)
    except TimeoutError as problem:
        message = "the request's body did not arrive in time"
        raise ApiError(408, "Timeout", message) from problem


async def collect(receive: Receive) -> bytes:
    """The whole body, however long it takes."""
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Disconnected
        part: bytes = message.get("body", b"")
        size += len(part)
        if size > BODY_BYTES:
            raise too_large(BODY_BYTES)
        parts.append(part)
        if not message.get("more_body"):
            return b"".join(parts) if len(parts) > 1 else part


def exact_media_type(content_type: bytes | None) -> str:
    """A content type without its parameters, in the letters that it was sent in."""
    return (content_type or b"").decode("latin-1").partition(";")[0].strip()


@lru_cache(64)
def media_type(content_type: bytes | None) -> str:
    """A content type without its parameters."""
    return (content_type or b"").decode("latin-1").partition(";")[0].strip().lower()


def decode_value(body: bytes, content_type: str) -> JsonValue:
    """A body as JSON, whatever of the accepted formats it is in; Unreadable if it is not."""
    if content_type in ("", "application/json"):
        value = decode_json(body)
    elif content_type == "application/yaml":
        value = decode_yaml(body)
    elif content_type == PROTOBUF:
        value = decode_protobuf(body)
    else:
        raise unsupported_media_type(ACCEPTED)
    if problem := excess(value, body):
        raise (TooDeep if "depth" in problem else Unreadable)(problem)
    return value


def decode_json(body: bytes) -> JsonValue:
    """A JSON body."""
    try:
        return decode(body)
    except (ValueError, RecursionError) as found:
        problem = syntax_problem(body)
        if isinstance(found, RecursionError) and not problem:
            raise TooDeep("exceeded max depth") from found
        if problem:
            raise Unreadable(problem) from found
        return _mended(body)


def _mended(body: bytes) -> JsonValue:
    """JSON whose text is not all Unicode: what is not becomes a replacement character."""
    try:
        return _without_halves(json.loads(body.decode("utf-8", "replace")))
    except (ValueError, RecursionError) as problem:
        raise Unreadable(str(problem)) from problem


def _without_halves(value: JsonValue) -> JsonValue:
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, list):
        return [_without_halves(item) for item in value]
    if isinstance(value, dict):
        return {_without_halves(key): _without_halves(item) for key, item in value.items()}
    return value


def decode_yaml(body: bytes) -> JsonValue:
    """A YAML body, of plain JSON values only; JSON is YAML too, and mostly what is sent as such."""
    with suppress(ValueError, RecursionError):
        return decode(body)
    import yaml  # noqa: PLC0415 - hardly anybody sends YAML

    try:
        text = body.decode("utf-8")
        if _has_aliases(text):
            raise Unreadable("the body uses YAML aliases, which are not accepted")
        return _as_json(yaml.load(text, Loader=_loader()))  # noqa: S506 - a safe loader
    except yaml.MarkedYAMLError as problem:
        raise Unreadable(_yaml_problem(problem)) from problem
    except (yaml.YAMLError, ValueError, RecursionError, TypeError, *_MISTAGGED) as problem:
        raise Unreadable(f"yaml: {problem}") from problem


@cache
def _loader() -> Any:
    """YAML 1.1 as Kubernetes reads it: `y` and `n` are truth values, and times are text."""
    import yaml  # noqa: PLC0415 - hardly anybody sends YAML

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
    """What YAML can say and JSON can, too."""
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
    """As Kubernetes' parser says it, which counts lines from the second on."""
    mark = problem.problem_mark or problem.context_mark
    where = f"line {mark.line + 1}: " if mark is not None and mark.line else ""
    return f"yaml: {where}{problem.problem or 'unknown problem parsing YAML content'}"


def _has_aliases(text: str) -> bool:
    """Whether a document refers to parts of itself, by which a small one can become huge.

    ValueError if it is nested so deeply, or so much, that reading it would take too long or end
    the process: the parser of events does not recurse, but what builds values of them does.
    """
    import yaml  # noqa: PLC0415 - hardly anybody sends YAML

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
        if depth > DEEPEST or number > _MOST_EVENTS:
            raise ValueError("exceeded max depth" if depth > DEEPEST else "too many values")
    return False


def _refuse_long_number(scalar: str) -> None:
    """A number of thousands of digits, in base ten or sixty, takes long to become one."""
    if len(scalar) > _LONGEST_NUMBER and not scalar.lstrip("+-.0123456789_:"):
        raise ValueError("a number is too long")


def decode_protobuf(body: bytes) -> JsonValue:
    """A protobuf body of a built-in kind."""
    from bayplan.embedded.apiserver.schema import protobuf, types  # noqa: PLC0415 - Go clients only

    try:
        api_version, kind, raw = protobuf.open_envelope(body)
        group = api_version.rpartition("/")[0]
        type_ = types.root_type(group, kind) or types.root_type("meta", kind)
        if type_ is None:
            raise unsupported_media_type(ACCEPTED)
        obj = protobuf.decode_message(raw, type_)
    except protobuf.WireError as problem:
        raise Unreadable(str(problem)) from problem
    return {"kind": kind, "apiVersion": api_version, **obj}


_SHOWN = 30


def read_object(body: bytes, media_type: str, kind: Kind, catalog: Catalog) -> JsonObject:
    """The object of a kind that a body is."""
    try:
        obj = typed(decode_value(body, media_type))
    except Unreadable as found:
        why = str(found)
        if media_type in ("", "application/json"):
            why = f"couldn't get version/kind; json parse error: {found}"
        raise _unrecognized(kind, why, body) from found
    _check_custom_kind(obj, kind)
    problem = kind_problem(obj, kind, catalog)
    if problem:
        raise bad_request(problem)
    return obj


def _check_custom_kind(obj: JsonObject, kind: Kind) -> None:
    given = obj.get("kind") or kind.kind
    if not kind.custom or obj.get("apiVersion") != kind.api_version or given == kind.kind:
        return
    meta = obj.get("metadata")
    name = meta.get("name") if isinstance(meta, dict) else ""
    problem = bad_value("kind", given, f"must be {kind.kind}")
    raise invalid(kind.group, given, name if isinstance(name, str) else "", [problem])


def typed(value: JsonValue) -> JsonObject:
    """A value that says of which kind it is, as far as it says it; Unreadable if it is none."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        told = described(value)
        raise Unreadable(f"json: cannot unmarshal {told} into Go value of type {TYPE_META}")
    for name, item in value.items():
        if name in ("apiVersion", "kind") and not isinstance(item, str | None):
            told = f"json: cannot unmarshal {described(item)} into Go struct field .{name}"
            raise Unreadable(f"{told} of type string")
    return value


def _unrecognized(kind: Kind, why: str, body: bytes) -> ApiError:
    what = f"the object provided is unrecognized (must be of type {kind.kind})"
    return bad_request(f"{what}: {why} ({_summary(body)})")


def _summary(body: bytes) -> str:
    if not body:
        return "<empty>"
    more = " ..." if len(body) > _SHOWN else ""
    begun = body[:_SHOWN]
    return (begun.decode("utf-8", "replace") if body[:1] == b"{" else begun.hex()) + more
