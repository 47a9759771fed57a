"""Objects on the wire: encoding, decoding, and the few fields that every object has.

A typed kind decodes straight into its struct, anything else into a dictionary. Items of a list
carry no apiVersion and kind on the wire; they get them here, so that an object looks the same
however it was fetched. An object that does not fit its type is named, with the field, and never
quoted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar, cast

import msgspec

from bayplan.client.errors import MalformedError
from bayplan.client.resources import Resource, T, Untyped
from bayplan.kube.meta import KubeObject, ObjectMeta, Struct

StructT = TypeVar("StructT", bound=Struct)
encode = msgspec.json.Encoder().encode


class ListMeta(Struct):
    """What a page of a list says of itself."""

    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")


class RawPage(Struct):
    """A page whose items are not decoded yet."""

    metadata: ListMeta = msgspec.field(default_factory=ListMeta)
    items: list[msgspec.Raw] | None = None


class Identity(Struct):
    """Just enough of an object to say which one it is."""

    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """Some objects, the version of the collection they show, and how to go on."""

    items: list[T]
    resource_version: str
    continue_token: str = ""


Unfit = Callable[[MalformedError], None]
"""What to do about an object that does not fit its type."""


def refuse(error: MalformedError) -> None:
    """Let one unfit object fail the whole answer."""
    raise error


def metadata_of(item: KubeObject | Untyped) -> ObjectMeta | Untyped:
    """The object's metadata in whichever form it has."""
    if isinstance(item, KubeObject):
        return item.metadata
    found = item.get("metadata")
    return cast("Untyped", found) if isinstance(found, dict) else {}


def _field(item: KubeObject | Untyped, attribute: str, key: str) -> str:
    meta = metadata_of(item)
    value = meta.get(key, "") if isinstance(meta, dict) else getattr(meta, attribute)
    return value if isinstance(value, str) else ""


def name_of(item: KubeObject | Untyped) -> str:
    """The object's name."""
    return _field(item, "name", "name")


def namespace_of(item: KubeObject | Untyped) -> str:
    """The object's namespace, empty for a cluster-scoped one."""
    return _field(item, "namespace", "namespace")


def uid_of(item: KubeObject | Untyped) -> str:
    """The object's uid: two objects of one name are told apart by it."""
    return _field(item, "uid", "uid")


def version_of(item: KubeObject | Untyped) -> str:
    """The object's resource version."""
    return _field(item, "resource_version", "resourceVersion")


def key_of(item: KubeObject | Untyped) -> str:
    """`namespace/name`, or just the name for a cluster-scoped object."""
    if isinstance(item, KubeObject):
        return item.key
    namespace = namespace_of(item)
    return f"{namespace}/{name_of(item)}" if namespace else name_of(item)


_DECODERS: dict[type[object], msgspec.json.Decoder[object]] = {
    dict: msgspec.json.Decoder(dict[str, object])
}


def _decoder(kind: type[T]) -> msgspec.json.Decoder[T]:
    if kind not in _DECODERS:
        _DECODERS[kind] = msgspec.json.Decoder(kind)
    return cast("msgspec.json.Decoder[T]", _DECODERS[kind])


def decode_object(data: bytes | msgspec.Raw, resource: Resource[T]) -> T:
    """One object of that resource."""
    try:
        item = _decoder(resource.type).decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise MalformedError(f"{resource.kind} {_whose(data)}: {error}") from None
    return _with_kind(item, resource)


def decode_page(data: bytes, resource: Resource[T], unfit: Unfit = refuse) -> Page[T]:
    """One page of that resource's list."""
    raw = decode(data, RawPage)
    items = []
    for entry in raw.items or ():
        try:
            items.append(decode_object(entry, resource))
        except MalformedError as error:
            unfit(error)
    return Page(items, raw.metadata.resource_version, raw.metadata.continue_)


def decode(data: bytes | msgspec.Raw, kind: type[StructT]) -> StructT:
    """Any other part of the protocol."""
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise MalformedError(f"not a {kind.__name__}: {error}") from None


def _whose(data: bytes | msgspec.Raw) -> str:
    try:
        meta = msgspec.json.decode(data, type=Identity).metadata
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return "(unnamed)"
    return f"{meta.namespace}/{meta.name}" if meta.namespace else meta.name


def _with_kind(item: T, resource: Resource[T]) -> T:
    if isinstance(item, KubeObject):
        item.api_version = item.api_version or resource.api_version
        item.kind = item.kind or resource.kind
    elif isinstance(item, dict):
        item.setdefault("apiVersion", resource.api_version)
        item.setdefault("kind", resource.kind)
    return item
