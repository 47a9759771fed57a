"""Encoding and decoding of objects, and the fields that every object has.

A typed kind decodes straight into its struct, anything else into a dictionary. Items of a list
carry no apiVersion and kind on the wire; they get them here, so that an object looks the same
however it was fetched. An object that does not fit its type is an error with its name and field.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar, cast

import msgspec

from bayplan.client.errors import DECODE_ERRORS, MalformedError
from bayplan.client.resources import Resource, T, Untyped
from bayplan.kube.codec import ObjectError, decode_as, read_head
from bayplan.kube.meta import KubeObject, ObjectMeta, Struct

StructT = TypeVar("StructT", bound=Struct)
encode = msgspec.json.Encoder().encode
_decode_dictionary = msgspec.json.Decoder(Untyped).decode


class ListMeta(Struct):
    """The metadata of a page of a list."""

    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")
    remaining_item_count: int | None = None


class RawPage(Struct):
    """A page of a list whose items are not decoded yet."""

    metadata: ListMeta = msgspec.field(default_factory=ListMeta)
    items: list[msgspec.Raw] | None = None


class PartialObjectMetadata(Struct):
    """An object of which only the metadata is decoded."""

    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """Objects of a list, the list's resource version, and the token of the next page."""

    items: list[T]
    resource_version: str
    continue_token: str = ""


MalformedHandler = Callable[[MalformedError], None]
"""Called with the error of an object that does not fit its type."""


def raise_malformed(error: MalformedError) -> None:
    """Let a malformed object fail the whole response."""
    raise error


def metadata_of(item: KubeObject | Untyped) -> ObjectMeta | Untyped:
    """Return the object's metadata, typed or as a dictionary."""
    if isinstance(item, KubeObject):
        return item.metadata
    found = item.get("metadata")
    return cast("Untyped", found) if isinstance(found, dict) else {}


def _field(item: KubeObject | Untyped, attribute: str, key: str) -> str:
    meta = metadata_of(item)
    value = meta.get(key, "") if isinstance(meta, dict) else getattr(meta, attribute)
    return value if isinstance(value, str) else ""


def name_of(item: KubeObject | Untyped) -> str:
    """Return the object's name."""
    return _field(item, "name", "name")


def namespace_of(item: KubeObject | Untyped) -> str:
    """Return the object's namespace, empty for a cluster-scoped one."""
    return _field(item, "namespace", "namespace")


def uid_of(item: KubeObject | Untyped) -> str:
    """Return the object's uid, which no other object of the same name has."""
    return _field(item, "uid", "uid")


def version_of(item: KubeObject | Untyped) -> str:
    """Return the object's resource version."""
    return _field(item, "resource_version", "resourceVersion")


def key_of(item: KubeObject | Untyped) -> str:
    """Return `namespace/name`, or just the name for a cluster-scoped object."""
    if isinstance(item, KubeObject):
        return item.key
    namespace = namespace_of(item)
    return f"{namespace}/{name_of(item)}" if namespace else name_of(item)


def decode_object(data: bytes | msgspec.Raw, resource: Resource[T]) -> T:
    """Decode an object of that resource."""
    kind = resource.typed_kind
    if kind is None:
        return cast("T", _decode_untyped(data, resource))
    try:
        return cast("T", decode_as(kind, data))
    except ObjectError as error:
        named = _identity(data, namespaced=kind.namespaced)
        raise MalformedError(str(error), *named) from None


def _identity(data: bytes | msgspec.Raw, *, namespaced: bool) -> tuple[str, str]:
    """Return the key and uid of a malformed object, as far as they can be read."""
    try:
        meta = read_head(data).metadata
    except ObjectError:
        return "", ""
    uid = meta.uid if isinstance(meta.uid, str) else ""
    return f"{meta.namespace}/{meta.name}" if namespaced else meta.name, uid


def _decode_untyped(data: bytes | msgspec.Raw, resource: Resource[T]) -> Untyped:
    try:
        item = _decode_dictionary(data)
    except DECODE_ERRORS:
        raise MalformedError(f"not a {resource.kind}, nor any object") from None
    item.setdefault("apiVersion", resource.api_version)
    item.setdefault("kind", resource.kind)
    return item


def decode_page(
    data: bytes, resource: Resource[T], malformed: MalformedHandler = raise_malformed
) -> Page[T]:
    """Decode a page of that resource's list."""
    raw = decode(data, RawPage)
    items = []
    for entry in raw.items or ():
        try:
            items.append(decode_object(entry, resource))
        except MalformedError as error:
            malformed(error)
    return Page(items, raw.metadata.resource_version, raw.metadata.continue_)


def decode(data: bytes | msgspec.Raw, kind: type[StructT]) -> StructT:
    """Decode any other message of the API."""
    try:
        return msgspec.json.decode(data, type=kind)
    except DECODE_ERRORS as error:
        raise MalformedError(f"malformed response: {error}") from None
