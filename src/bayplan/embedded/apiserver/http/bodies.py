"""Request bodies: bounded, timed out, decoded."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from bayplan.embedded.apiserver.errors import (
    ApiError,
    bad_request,
    too_large,
    unsupported_media_type,
)
from bayplan.embedded.apiserver.jsontypes import JsonObject, JsonValue, decode

BODY_BYTES = 3 * 1024 * 1024
BODY_SECONDS = 30.0
ACCEPTED = ("application/json", "application/yaml")

Receive = Callable[[], Awaitable[Any]]


class Disconnected(Exception):  # noqa: N818 - nothing is wrong here
    """The client is gone; nobody waits for an answer."""


async def read_body(receive: Receive) -> bytes:
    """The whole body, if it comes in time and is not too large."""
    try:
        async with asyncio.timeout(BODY_SECONDS):
            return await _collect(receive)
    except TimeoutError as problem:
        message = "the request's body did not arrive in time"
        raise ApiError(408, "Timeout", message) from problem


async def _collect(receive: Receive) -> bytes:
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
    raise unsupported_media_type(ACCEPTED)


def decode_json(body: bytes) -> JsonValue:
    """A JSON body; 400 if it is not JSON."""
    try:
        return decode(body)
    except (ValueError, RecursionError) as problem:
        raise bad_request(f"the request's body is not valid JSON: {problem}") from problem


def decode_yaml(body: bytes) -> JsonValue:
    """A YAML body, by way of plain JSON values only; 400 if it is not YAML."""
    import yaml  # noqa: PLC0415 - hardly anybody sends YAML

    try:
        text = body.decode("utf-8")
        if "&" in text and any(isinstance(e, yaml.AliasEvent) for e in yaml.parse(text)):
            raise bad_request("the request's body uses YAML aliases, which are not accepted")
        value = yaml.load(text, Loader=yaml.CSafeLoader)
        return decode_json(_to_json(value))
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError, TypeError) as problem:
        raise bad_request(f"the request's body is not valid YAML: {problem}") from problem


def _to_json(value: JsonValue) -> bytes:
    import msgspec  # noqa: PLC0415

    return msgspec.json.encode(value)


def require_object(value: JsonValue) -> JsonObject:
    """A body that must be a JSON object with well-shaped metadata."""
    if not isinstance(value, dict):
        raise bad_request("the request's body must be a JSON object")
    return value
