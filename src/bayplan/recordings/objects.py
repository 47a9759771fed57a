"""Objects as a recording keeps them: what decides something, and none of what is nobody's business.

Typed objects have only the fields that Bayplan reads, so a container's command, arguments and
environment are not among them. Of annotations those are kept that some part of a cluster decides
by; the version of an object is left out, so that a heartbeat that says nothing new is no change.
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
Recorded: TypeAlias = "KubeObject | dict[str, object]"
"""An object of a kind that we have a type for, or any other as plain values."""
EVENT = ("events.k8s.io/v1", "Event")
DECIDING = KEPT_ANNOTATIONS | {"cluster.x-k8s.io/owner-name"}
"""Annotations by which something is decided, as `bayplan dump` keeps them, and by which Cluster API
names the set that a node is of.
"""
_SPOKEN = frozenset({"status", "featureGates"})
"""What of a ConfigMap's data is kept: an autoscaler's status."""
_decode_event = msgspec.json.Decoder(Event).decode


class Identity(NamedTuple):
    """Which object it is."""

    api_version: str
    kind: str
    key: str


def identity_of(obj: Recorded) -> Identity:
    """Which object it is; ValueError if it does not say."""
    if isinstance(obj, Event):
        return Identity(*EVENT, obj.key)
    if isinstance(obj, KubeObject):
        kind = KINDS.get(type(obj).__name__)
        if kind is None:
            raise ValueError(f"{type(obj).__name__} is not a kind that is recorded")
        return Identity(kind.api_version, kind.name, obj.key)
    meta = obj.get("metadata")
    said = meta if isinstance(meta, dict) else {}
    namespace, name = said.get("namespace"), said.get("name")
    found = (obj.get("apiVersion"), obj.get("kind"), name)
    if not all(isinstance(one, str) and one for one in found):
        raise ValueError("an object without apiVersion, kind or name cannot be recorded")
    key = f"{namespace}/{name}" if namespace else str(name)
    return Identity(str(found[0]), str(found[1]), key)


def encoded(obj: Recorded) -> bytes:
    """An object as JSON, without what is nobody's business."""
    if isinstance(obj, Event):
        told = replace(obj, api_version=EVENT[0], kind=EVENT[1], metadata=_meta(obj.metadata))
        return msgspec.json.encode(told)
    if isinstance(obj, KubeObject):
        return encode(replace(obj, metadata=_meta(obj.metadata)))
    return msgspec.json.encode(_untyped(obj))


def decoded(identity: Identity, data: msgspec.Raw) -> Recorded:
    """An object of a recording; ObjectError if it does not fit its kind."""
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
    kept: Labels = {key: meta.annotations[key] for key in meta.annotations if key in DECIDING}
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
    said = meta if isinstance(meta, dict) else {}
    kept = {key: value for key, value in said.items() if key in _KEPT_META}
    annotations = said.get("annotations")
    if isinstance(annotations, dict):
        kept["annotations"] = {k: v for k, v in annotations.items() if k in DECIDING}
    found = {key: value for key, value in obj.items() if key not in _SECRET}
    if obj.get("kind") == "ConfigMap":
        data = obj.get("data")
        told = data.items() if isinstance(data, dict) else ()
        found["data"] = {key: value for key, value in told if key in _SPOKEN}
    return {**found, "metadata": kept}


_KEPT_META = frozenset(
    {"name", "namespace", "uid", "labels", "creationTimestamp", "ownerReferences"}
)
_SECRET = frozenset({"metadata", "binaryData", "stringData", "data"})
