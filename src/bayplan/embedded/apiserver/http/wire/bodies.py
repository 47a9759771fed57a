"""Request bodies: bounded, timed out, decoded."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

from bayplan.embedded.apiserver.errors import (
    ApiError,
    bad_request,
    too_large,
    unsupported_media_type,
)
from bayplan.embedded.apiserver.jsontypes import JsonObject, JsonValue, decode, encode

BODY_BYTES = 3 * 1024 * 1024
BODY_SECONDS = 30.0
PROTOBUF = "application/vnd.kubernetes.protobuf"
ACCEPTED = ("application/json", "application/yaml", PROTOBUF)

Receive = Callable[[], Awaitable[Any]]


class Disconnected(Exception):  # noqa: N818 - nothing is wrong here
    """The client is gone; nobody waits for an answer."""


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


def media_type(content_type: bytes | None) -> str:
    """A content type without its parameters."""
    return (content_type or b"").decode("latin-1").partition(";")[0].strip().lower()


def decode_value(body: bytes, content_type: str) -> JsonValue:
    """A body as JSON, whatever of the accepted formats it is in."""
    if content_type in ("", "application/json"):
        return decode_json(body)
    if content_type == "application/yaml":
        return decode_yaml(body)
    if content_type == PROTOBUF:
        return decode_protobuf(body)
    raise unsupported_media_type(ACCEPTED)


def decode_json(body: bytes) -> JsonValue:
    """A JSON body; 400 if it is not JSON."""
    try:
        return decode(body)
    except (ValueError, RecursionError) as problem:
        raise bad_request(f"the request's body is not valid JSON: {problem}") from problem


def decode_yaml(body: bytes) -> JsonValue:
    """A YAML body, of plain JSON values only; 400 if it is anything else."""
    import yaml  # noqa: PLC0415 - hardly anybody sends YAML

    try:
        text = body.decode("utf-8")
        if _has_aliases(text):
            raise bad_request("the request's body uses YAML aliases, which are not accepted")
        return decode(encode(yaml.load(text, Loader=yaml.CSafeLoader)))
    except (yaml.YAMLError, ValueError, RecursionError, TypeError) as problem:
        raise bad_request(f"the request's body is not valid YAML: {problem}") from problem


def _has_aliases(text: str) -> bool:
    """Whether a document refers to parts of itself, by which a small one can become huge."""
    import yaml  # noqa: PLC0415 - hardly anybody sends YAML

    events = yaml.parse(text, Loader=yaml.CSafeLoader)
    return "*" in text and any(isinstance(event, yaml.AliasEvent) for event in events)


def decode_protobuf(body: bytes) -> JsonValue:
    """A protobuf body of a built-in kind; 400 if it is anything else."""
    from bayplan.embedded.apiserver.schema import protobuf, roots  # noqa: PLC0415 - Go clients only

    try:
        api_version, kind, raw = protobuf.open_envelope(body)
        group = api_version.rpartition("/")[0]
        type_ = roots.root_type(group, kind) or roots.root_type("meta", kind)
        if type_ is None:
            raise unsupported_media_type(ACCEPTED)
        obj = protobuf.decode_message(raw, type_)
    except protobuf.WireError as problem:
        raise bad_request(f"the request's body is not valid protobuf: {problem}") from problem
    return {"kind": kind, "apiVersion": api_version, **obj}


def refuse_duplicates(body: bytes) -> None:
    """400 if a JSON object names a field twice; only clients that want strictness pay for this."""
    repeated: list[str] = []

    def collect(pairs: list[tuple[str, JsonValue]]) -> JsonObject:
        names = [name for name, _ in pairs]
        repeated.extend({name for name in names if names.count(name) > 1} if _twice(names) else ())
        return dict(pairs)

    json.loads(body, object_pairs_hook=collect)
    if repeated:
        listed = ", ".join(f'duplicate field "{name}"' for name in sorted(set(repeated)))
        raise bad_request(f"strict decoding error: {listed}")


def _twice(names: list[str]) -> bool:
    return len(set(names)) != len(names)


def require_object(value: JsonValue) -> JsonObject:
    """A body that must be a JSON object."""
    if not isinstance(value, dict):
        raise bad_request("the request's body must be a JSON object")
    return value
