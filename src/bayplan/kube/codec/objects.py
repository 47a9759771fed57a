"""One object from and to its wire form."""

from __future__ import annotations

import functools
from collections.abc import Callable

import msgspec

from bayplan.base.decode_errors import locate, reason
from bayplan.base.values import JsonObject, JsonValue
from bayplan.kube.codec.defaults import settle
from bayplan.kube.codec.kinds import EVENTS, Kind, find_kind
from bayplan.kube.codec.problems import ObjectError, identify
from bayplan.kube.events import Event
from bayplan.kube.meta import KubeObject

Wire = bytes | memoryview | msgspec.Raw | JsonObject
"""An object not yet decoded: JSON text, or plain values such as YAML gives."""


class _HeadMeta(msgspec.Struct):
    name: str = ""
    namespace: str = ""
    uid: object = ""


class Head(msgspec.Struct, rename="camel"):
    """Just enough of an object to know what it is."""

    api_version: str = ""
    kind: str = ""
    metadata: _HeadMeta = msgspec.field(default_factory=_HeadMeta)

    @property
    def identity(self) -> str:
        """`Kind namespace/name`, for messages."""
        return identify(self.kind, self.metadata.namespace, self.metadata.name)


_read_head = msgspec.json.Decoder(Head).decode
_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


def decode_object(data: Wire) -> KubeObject:
    """The object that JSON or plain values say; ObjectError if they do not say one we know."""
    head = read_head(data)
    kind = find_kind(head.kind, head.api_version)
    if kind is None:
        raise ObjectError(head.identity, "kind", head.kind, "not a kind that is read here")
    return decode_as(kind, data)


def read_head(data: Wire) -> Head:
    """What an object says that it is; what of that has the wrong type reads as empty."""
    try:
        return msgspec.convert(data, Head) if isinstance(data, dict) else _read_head(data)
    except _UNREADABLE:
        return _lenient_head(_plain(data))


def decode_as(kind: Kind, data: Wire) -> KubeObject:
    """The object, which is known to be of that kind."""
    try:
        if isinstance(data, dict):
            return settle(msgspec.convert(data, kind.type), kind)
        return settle(_decoder(kind)(data), kind)
    except _UNREADABLE as error:
        return settle(_decode_again(kind, data, str(error)), kind)


_OLDER_EVENTS = {
    "involvedObject": "regarding",
    "message": "note",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
    "reportingComponent": "reportingController",
}
"""How the older API (v1) calls what the newer calls otherwise."""


def decode_event(data: Wire) -> Event:
    """The event, in the words of whichever of the two APIs wrote it."""
    plain = _plain(data, EVENTS.name)
    if not isinstance(plain, dict):
        raise ObjectError(EVENTS.name, "", plain, "not an object")
    named: JsonObject = {_OLDER_EVENTS.get(key, key): value for key, value in plain.items()}
    found = decode_as(EVENTS, named)
    if not isinstance(found, Event) or not found.metadata.name:
        raise ObjectError(EVENTS.name, "metadata.name", None, "is missing")
    return found


def encode(obj: KubeObject) -> bytes:
    """The object as JSON, with its kind and version."""
    kind = find_kind(type(obj).__name__)
    if kind is not None and not (obj.kind and obj.api_version):
        obj = msgspec.structs.replace(obj, kind=kind.name, api_version=kind.api_version)
    return msgspec.json.encode(obj)


@functools.cache
def _decoder(kind: Kind) -> Callable[[bytes | memoryview | msgspec.Raw], KubeObject]:
    return msgspec.json.Decoder(kind.type).decode


def _decode_again(kind: Kind, data: Wire, first_error: str) -> KubeObject:
    """The object without its nulls, or the error with its place."""
    plain = _plain(data, _identity(kind, data))
    message = first_error
    try:
        plain = without_nulls(plain)
        return msgspec.convert(plain, kind.type)
    except RecursionError:
        message = "nested too deeply"
    except msgspec.ValidationError as error:
        message = str(error)
    path, shown = locate(plain, message)
    raise ObjectError(_identity(kind, data), path, shown, reason(message))


def _identity(kind: Kind, data: Wire) -> str:
    try:
        meta = read_head(data).metadata
    except ObjectError:
        return kind.name
    return identify(kind.name, meta.namespace, meta.name)


def _plain(data: Wire, identity: str = "object") -> JsonValue:
    """The plain values of an object; ObjectError where it is not even JSON."""
    try:
        plain: JsonValue = data if isinstance(data, dict) else msgspec.json.decode(data)
    except RecursionError:
        raise ObjectError(identity, "", None, "nested too deeply") from None
    except UnicodeDecodeError:
        raise ObjectError(identity, "", None, "not UTF-8") from None
    except msgspec.DecodeError as error:
        raise ObjectError(identity, "", None, f"cannot be read: {error}"[:200]) from None
    return plain


def without_nulls(value: JsonValue) -> JsonValue:
    """The value without the keys whose value is null, at any depth."""
    if isinstance(value, dict):
        return {k: without_nulls(v) for k, v in value.items() if v is not None}
    if isinstance(value, list):
        return [without_nulls(item) for item in value]
    return value


def _lenient_head(plain: JsonValue) -> Head:
    if not isinstance(plain, dict):
        raise ObjectError("object", "", plain, "not an object")
    metadata = plain.get("metadata")
    meta = metadata if isinstance(metadata, dict) else {}
    return Head(
        api_version=_text(plain.get("apiVersion")),
        kind=_text(plain.get("kind")),
        metadata=_HeadMeta(name=_text(meta.get("name")), namespace=_text(meta.get("namespace"))),
    )


def _text(value: JsonValue) -> str:
    return value if isinstance(value, str) else ""
