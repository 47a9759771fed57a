"""Objects as a recording stores them: the fields that decisions read, and no private data.

Typed objects have only the fields that Bayplan reads, so a container's command, arguments and
environment are not among them. Annotations are kept only if some decision reads them; the resource
version is left out, so that a heartbeat without news is no change.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias, cast

import msgspec
from msgspec.structs import replace

from bayplan.kube.codec import KINDS, ObjectError, decode_as, encode, find_kind
from bayplan.kube.events import Event
from bayplan.kube.meta import KubeObject, Labels, ObjectMeta
from bayplan.recordings.privacy import KEPT_ANNOTATIONS

Untyped: TypeAlias = "dict[str, object]"
RecordedObject: TypeAlias = "KubeObject | dict[str, object]"
"""An object of a kind that Bayplan has a type for, or any other as plain values."""
EVENT = ("events.k8s.io/v1", "Event")
KEPT = KEPT_ANNOTATIONS | {"cluster.x-k8s.io/owner-name"}
"""Annotations that decisions read, as in `bayplan dump`, and Cluster API's owner of a node."""
_STATUS_DATA = frozenset({"status", "featureGates"})
"""The keys of a ConfigMap's data that are kept: an autoscaler's status."""
_decode_event = msgspec.json.Decoder(Event).decode


class ObjectIdentity(NamedTuple):
    """Identity of an object: API version, kind, and namespace/name."""

    api_version: str
    kind: str
    key: str


def identity_of(obj: RecordedObject) -> ObjectIdentity:
    """Return an object's identity; ValueError if it lacks a part of it."""
    if isinstance(obj, Event):
        return ObjectIdentity(*EVENT, obj.key)
    if isinstance(obj, KubeObject):
        kind = KINDS.get(type(obj).__name__)
        if kind is None:
            raise ValueError(f"objects of kind {type(obj).__name__} are not recorded")
        return ObjectIdentity(kind.api_version, kind.name, obj.key)
    meta = obj.get("metadata")
    fields = meta if isinstance(meta, dict) else {}
    namespace, name = fields.get("namespace"), fields.get("name")
    found = (obj.get("apiVersion"), obj.get("kind"), name)
    if not all(isinstance(one, str) and one for one in found):
        raise ValueError("an object without apiVersion, kind or name cannot be recorded")
    key = f"{namespace}/{name}" if namespace else str(name)
    return ObjectIdentity(str(found[0]), str(found[1]), key)


def encode_object(obj: RecordedObject) -> bytes:
    """Encode an object as JSON, without private data."""
    if isinstance(obj, Event):
        event = replace(obj, api_version=EVENT[0], kind=EVENT[1], metadata=_meta(obj.metadata))
        return msgspec.json.encode(event)
    if isinstance(obj, KubeObject):
        return encode(replace(obj, metadata=_meta(obj.metadata)))
    return msgspec.json.encode(_untyped(obj))


def decode_object(identity: ObjectIdentity, data: msgspec.Raw) -> RecordedObject:
    """Decode an object of a recording; ObjectError if it does not match its kind."""
    if (identity.api_version, identity.kind) == EVENT:
        try:
            return _decode_event(data)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise ObjectError(f"Event {identity.key}", "", None, str(error)[:200]) from None
    kind = find_kind(identity.kind, identity.api_version)
    if kind is not None:
        return decode_as(kind, data)
    return cast("Untyped", msgspec.json.decode(data, type=dict))


def _meta(meta: ObjectMeta) -> ObjectMeta:
    kept: Labels = {key: meta.annotations[key] for key in meta.annotations if key in KEPT}
    return replace(
        meta,
        annotations=kept,
        resource_version="",
        generate_name="",
        generation=0,
        finalizers=[],
    )


def _untyped(obj: Untyped) -> Untyped:
    meta = obj.get("metadata")
    fields = meta if isinstance(meta, dict) else {}
    kept = {key: value for key, value in fields.items() if key in _KEPT_META}
    annotations = fields.get("annotations")
    if isinstance(annotations, dict):
        kept["annotations"] = {k: v for k, v in annotations.items() if k in KEPT}
    found = {key: value for key, value in obj.items() if key not in _SECRET}
    if obj.get("kind") == "ConfigMap":
        data = obj.get("data")
        items = data.items() if isinstance(data, dict) else ()
        found["data"] = {key: value for key, value in items if key in _STATUS_DATA}
    return {**found, "metadata": kept}


_KEPT_META = frozenset(
    {"name", "namespace", "uid", "labels", "creationTimestamp", "ownerReferences"}
)
_SECRET = frozenset({"metadata", "binaryData", "stringData", "data"})
