"""Objects on the wire: encoding, decoding, and the few fields that every object has.

A typed kind decodes straight into its struct, anything else into a dictionary. Items of a list
carry no apiVersion and kind on the wire; they get them here, so that an object looks the same
however it was fetched. One that does not fit its type is an error that names it and the field.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar, cast

import msgspec

from bayplan.client.errors import UNREADABLE, MalformedError
from bayplan.client.resources import Resource, T, Untyped
from bayplan.kube.codec import ObjectError, decode_as, read_head
from bayplan.kube.meta import KubeObject, ObjectMeta, Struct

StructT = TypeVar("StructT", bound=Struct)
encode = msgspec.json.Encoder().encode
_decode_dictionary = msgspec.json.Decoder(Untyped).decode


class ListMeta(Struct):
    """What a page of a list says of itself."""

    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")
    remaining_item_count: int | None = None


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


def decode_object(data: bytes | msgspec.Raw, resource: Resource[T]) -> T:
    """One object of that resource."""
    kind = resource.typed_kind
    if kind is None:
        return cast("T", _decode_untyped(data, resource))
    try:
        return cast("T", decode_as(kind, data))
    except ObjectError as error:
        named = _identity(data, namespaced=kind.namespaced)
        raise MalformedError(str(error), *named) from None


def _identity(data: bytes | msgspec.Raw, *, namespaced: bool) -> tuple[str, str]:
    """The key and uid of an object that does not fit its type, as far as they can be made out."""
    try:
        meta = read_head(data).metadata
    except ObjectError:
        return "", ""
    uid = meta.uid if isinstance(meta.uid, str) else ""
    return f"{meta.namespace}/{meta.name}" if namespaced else meta.name, uid


def _decode_untyped(data: bytes | msgspec.Raw, resource: Resource[T]) -> Untyped:
    try:
        item = _decode_dictionary(data)
    except UNREADABLE:
        raise MalformedError(f"not a {resource.kind}, nor any object") from None
    item.setdefault("apiVersion", resource.api_version)
    item.setdefault("kind", resource.kind)
    return item


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
    except UNREADABLE as error:
        raise MalformedError(f"an answer that cannot be read: {error}") from None
