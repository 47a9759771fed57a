"""Decoding and encoding of objects, and the kinds that are decoded into types.

Decoding is typed and fast. Only if it fails is the object decoded again into plain values: to drop
explicit nulls, which Kubernetes treats as absent, and, if that does not help, to name the field and
the value in the error.

Any version of the right API group is accepted: the fields that are read are the same in all of
them. The group matters, since other groups use the same kinds (there is more than one `Service`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple

import msgspec

from bayplan.base.decode_errors import locate, reason
from bayplan.base.values import SHOWN_CHARACTERS, JsonObject, JsonValue, printable, shorten
from bayplan.kube.coordination import Lease
from bayplan.kube.devices import DeviceClass, ResourceClaim
from bayplan.kube.events import Event
from bayplan.kube.kinds import names_of
from bayplan.kube.meta import KubeObject
from bayplan.kube.nodes import Node
from bayplan.kube.pods import Pod, PodSpec
from bayplan.kube.registrations import (
    MutatingWebhookConfiguration,
    NodeGroup,
    ValidatingWebhookConfiguration,
)
from bayplan.kube.storage import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from bayplan.kube.volcano import PodGroup, Queue
from bayplan.kube.workloads import (
    DaemonSet,
    Job,
    Namespace,
    PodDisruptionBudget,
    PriorityClass,
    ReplicaSet,
    ReplicationController,
    RuntimeClass,
    Service,
    StatefulSet,
)


class ObjectError(ValueError):
    """An invalid object: its identity, the field, the value and what is wrong."""

    def __init__(self, identity: str, path: str, shown: object, problem: str) -> None:
        super().__init__(identity, path, problem)
        self.source = ""
        self.identity = identity
        self.path = path
        self.shown = shorten(shown)
        self.problem = problem

    def at(self, source: str) -> ObjectError:
        """Return this error with the file that it came from."""
        self.source = source
        return self

    def __str__(self) -> str:
        places = ": ".join(filter(None, (self.source, self.identity, self.path)))
        value = f" (value {self.shown})" if self.shown else ""
        return printable(f"{places}: {self.problem}{value}")


def identify(kind: str, namespace: str, name: str) -> str:
    """Return `Kind namespace/name`, as far as it is known."""
    key = (
        f"{namespace[:SHOWN_CHARACTERS]}/{name[:SHOWN_CHARACTERS]}"
        if namespace
        else name[:SHOWN_CHARACTERS]
    )
    return f"{kind[:SHOWN_CHARACTERS] or 'object'} {key or '(unnamed)'}"


class Kind(NamedTuple):
    """A kind: its type, its group and current version, and whether it is namespaced."""

    type: type[KubeObject]
    group: str
    version: str
    namespaced: bool

    @property
    def name(self) -> str:
        """The value of `kind` on the wire."""
        return self.type.__name__

    @property
    def api_version(self) -> str:
        """The value of `apiVersion` on the wire."""
        return f"{self.group}/{self.version}" if self.group else self.version


_TYPES: tuple[type[KubeObject], ...] = (
    Node,
    Pod,
    Namespace,
    Service,
    ReplicationController,
    PersistentVolume,
    PersistentVolumeClaim,
    ReplicaSet,
    StatefulSet,
    DaemonSet,
    Job,
    PodDisruptionBudget,
    PriorityClass,
    RuntimeClass,
    StorageClass,
    CSINode,
    CSIDriver,
    CSIStorageCapacity,
    VolumeAttachment,
    DeviceClass,
    ResourceClaim,
    Queue,
    PodGroup,
    NodeGroup,
    Lease,
    MutatingWebhookConfiguration,
    ValidatingWebhookConfiguration,
)


def _typed(kind: type[KubeObject], group: str | None = None) -> Kind:
    names = names_of(kind.__name__, group)
    return Kind(kind, names.group, names.version, names.namespaced)


KINDS: Mapping[str, Kind] = MappingProxyType({kind.__name__: _typed(kind) for kind in _TYPES})
"""Every kind by its name."""

EVENTS = _typed(Event, "events.k8s.io")
"""Not in KINDS: events affect no decision and are read only where they are shown."""


def find_kind(name: str, api_version: str = "") -> Kind | None:
    """Return the kind of that name, unless the API group is another one."""
    kind = KINDS.get(name)
    if kind is None or not api_version:
        return kind
    group = api_version.rpartition("/")[0]
    return kind if group in {kind.group, "extensions"} else None


DEFAULT_NAMESPACE = "default"


def apply_defaults(obj: KubeObject, kind: Kind) -> KubeObject:
    """Set the kind, the namespace and the defaults that depend on other fields."""
    obj.kind = kind.name
    obj.api_version = obj.api_version or kind.api_version
    meta = obj.metadata
    if kind.namespaced != bool(meta.namespace):
        meta.namespace = DEFAULT_NAMESPACE if kind.namespaced else ""
    if isinstance(obj, Pod):
        _default_host_ports(obj.spec)
    elif isinstance(obj, DaemonSet):
        _default_host_ports(obj.spec.template.spec)
    elif isinstance(obj, Node) and not obj.status.allocatable:
        obj.status.allocatable = dict(obj.status.capacity)
    return obj


def _default_host_ports(spec: PodSpec) -> None:
    """Set the host port of every container port of a pod on the host network."""
    if not spec.host_network:
        return
    for container in (*spec.containers, *spec.init_containers):
        for port in container.ports:
            port.host_port = port.host_port or port.container_port


Wire = bytes | memoryview | msgspec.Raw | JsonObject
"""An object not yet decoded: JSON text, or plain values as decoded from YAML."""


class _HeadMeta(msgspec.Struct):
    name: str = ""
    namespace: str = ""
    uid: object = ""


class Head(msgspec.Struct, rename="camel"):
    """The part of an object that identifies it."""

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
    """Decode an object from JSON or plain values; raise ObjectError for other kinds."""
    head = read_head(data)
    kind = find_kind(head.kind, head.api_version)
    if kind is None:
        raise ObjectError(head.identity, "kind", head.kind, "unknown kind")
    return decode_as(kind, data)


def read_head(data: Wire) -> Head:
    """Return the identity of an object; fields of the wrong type read as empty."""
    try:
        return msgspec.convert(data, Head) if isinstance(data, dict) else _read_head(data)
    except _UNREADABLE:
        return _lenient_head(_plain(data))


def decode_as(kind: Kind, data: Wire) -> KubeObject:
    """Decode an object of a known kind."""
    try:
        if isinstance(data, dict):
            return apply_defaults(msgspec.convert(data, kind.type), kind)
        return apply_defaults(_decoder(kind)(data), kind)
    except _UNREADABLE as error:
        return apply_defaults(_decode_again(kind, data, str(error)), kind)


_CORE_EVENT_FIELDS = {
    "involvedObject": "regarding",
    "message": "note",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
    "reportingComponent": "reportingController",
}
"""Fields of core/v1 events by their name in events.k8s.io/v1."""


def decode_event(data: Wire) -> Event:
    """Decode an event of core/v1 or events.k8s.io/v1."""
    plain = _plain(data, EVENTS.name)
    if not isinstance(plain, dict):
        raise ObjectError(EVENTS.name, "", plain, "not an object")
    named: JsonObject = {_CORE_EVENT_FIELDS.get(key, key): value for key, value in plain.items()}
    found = decode_as(EVENTS, named)
    if not isinstance(found, Event) or not found.metadata.name:
        raise ObjectError(EVENTS.name, "metadata.name", None, "is missing")
    return found


def encode(obj: KubeObject) -> bytes:
    """Encode an object as JSON, with its kind and version."""
    kind = find_kind(type(obj).__name__)
    if kind is not None and not (obj.kind and obj.api_version):
        obj = msgspec.structs.replace(obj, kind=kind.name, api_version=kind.api_version)
    return msgspec.json.encode(obj)


@functools.cache
def _decoder(kind: Kind) -> Callable[[bytes | memoryview | msgspec.Raw], KubeObject]:
    return msgspec.json.Decoder(kind.type).decode


def _decode_again(kind: Kind, data: Wire, first_error: str) -> KubeObject:
    """Decode the object without its nulls, or raise the error with its field."""
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
    """Return the plain values of an object; raise ObjectError if it is not JSON."""
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
    """Return the value without keys whose value is null, at any depth."""
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
