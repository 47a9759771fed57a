"""One object from and to its wire form."""

from __future__ import annotations

import functools

import msgspec

from bayplan.kube.codec.kinds import Kind, find_kind
from bayplan.kube.codec.places import locate, reason
from bayplan.kube.codec.problems import ObjectError, identify
from bayplan.kube.meta import KubeObject, ObjectMeta

JsonValue = None | bool | int | float | str | list["JsonValue"] | dict[str, "JsonValue"]
JsonObject = dict[str, JsonValue]

DEFAULT_NAMESPACE = "default"


class _HeadMeta(msgspec.Struct):
    name: str = ""
    namespace: str = ""


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


def decode_object(data: bytes | msgspec.Raw | JsonObject) -> KubeObject:
    """The object that JSON or plain values say; ObjectError if they do not say one we know."""
    head = read_head(data)
    kind = find_kind(head.kind, head.api_version)
    if kind is None:
        raise ObjectError(head.identity, "kind", head.kind, "not a kind that is read here")
    return decode_as(kind, data)


def read_head(data: bytes | msgspec.Raw | JsonObject) -> Head:
    """What an object says that it is; whatever of that is malformed reads as empty."""
    try:
        return msgspec.convert(data, Head) if isinstance(data, dict) else _read_head(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _lenient_head(data)


def decode_as(kind: Kind, data: bytes | msgspec.Raw | JsonObject) -> KubeObject:
    """The object, which is known to be of that kind."""
    try:
        decoded: KubeObject = (
            msgspec.convert(data, kind.type) if isinstance(data, dict) else _decoder(kind)(data)
        )
    except (msgspec.ValidationError, UnicodeDecodeError, RecursionError):
        decoded = _decode_again(kind, data)
    except msgspec.DecodeError as error:
        raise ObjectError(f"{kind.name} (unreadable)", "", None, str(error)) from None
    return _settled(decoded, kind)


def encode(obj: KubeObject) -> bytes:
    """The object as JSON, with its kind and version."""
    kind = find_kind(type(obj).__name__)
    if kind is not None:
        obj.kind = obj.kind or kind.name
        obj.api_version = obj.api_version or kind.api_version
    return msgspec.json.encode(obj)


@functools.cache
def _decoder(kind: Kind) -> functools.partial[KubeObject]:
    return functools.partial(msgspec.json.Decoder(kind.type).decode)


def _settled(obj: KubeObject, kind: Kind) -> KubeObject:
    """The object with what goes without saying: its kind, and the namespace it is in."""
    obj.kind = kind.name
    obj.api_version = obj.api_version or kind.api_version
    meta: ObjectMeta = obj.metadata
    if kind.namespaced:
        meta.namespace = meta.namespace or DEFAULT_NAMESPACE
    elif meta.namespace:
        meta.namespace = ""
    return obj


def _decode_again(kind: Kind, data: bytes | msgspec.Raw | JsonObject) -> KubeObject:
    """The object without its nulls, or the error with its place."""
    head = read_head(data)
    identity = identify(kind.name, head.metadata.namespace, head.metadata.name)
    plain: JsonValue = None
    try:
        plain = without_nulls(data if isinstance(data, dict) else msgspec.json.decode(data))
        return msgspec.convert(plain, kind.type)
    except msgspec.ValidationError as error:
        path, shown = locate(plain, str(error))
        raise ObjectError(identity, path, shown, reason(str(error))) from None
    except RecursionError:
        raise ObjectError(identity, "", None, "nested too deeply") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ObjectError(identity, "", None, f"not UTF-8 JSON: {error}"[:200]) from None


def without_nulls(value: JsonValue) -> JsonValue:
    """The value without the keys whose value is null, at any depth."""
    if isinstance(value, dict):
        return {k: without_nulls(v) for k, v in value.items() if v is not None}
    if isinstance(value, list):
        return [without_nulls(item) for item in value]
    return value


def _lenient_head(data: bytes | msgspec.Raw | JsonObject) -> Head:
    try:
        plain = data if isinstance(data, dict) else msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return Head()
    if not isinstance(plain, dict):
        return Head()
    metadata = plain.get("metadata")
    meta = metadata if isinstance(metadata, dict) else {}
    return Head(
        api_version=_text(plain.get("apiVersion")),
        kind=_text(plain.get("kind")),
        metadata=_HeadMeta(name=_text(meta.get("name")), namespace=_text(meta.get("namespace"))),
    )


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
