"""Anonymises objects: for each field, what it holds and the pseudonym that it gets.

Every string counts as a private name unless it is known to be something else: a term of the API, a
time, an amount, the key or value of a label. A field that is added to a type later is hashed until
it is listed here.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import msgspec

from bayplan.kube.attachlimits import PUBLISHED_LIMITS
from bayplan.kube.meta import KubeObject, LabelSelectorRequirement, ObjectMeta, OwnerReference
from bayplan.kube.nodes import NodeSelectorRequirement, Taint
from bayplan.kube.pods import ContainerPort, PodSchedulingGate, Toleration
from bayplan.kube.registrations import (
    MutatingWebhookConfiguration,
    NodeGroup,
    ValidatingWebhookConfiguration,
)
from bayplan.kube.resources import PODS
from bayplan.kube.storage import TopologySelectorLabelRequirement
from bayplan.recordings.privacy import wellknown
from bayplan.recordings.privacy.pseudonyms import Pseudonyms

FieldChange: TypeAlias = Callable[[Any], Any]
"""Maps the value of a field to its replacement."""
FieldChanges: TypeAlias = tuple[tuple[str, FieldChange], ...]

_CHECKED = frozenset(
    {
        *("operator", "effect", "protocol", "when_unsatisfiable", "preemption_policy"),
        *("node_affinity_policy", "node_taints_policy", "volume_binding_mode"),
    }
)
"""Fields with terms of the API, which validation has checked."""
_TERMS = frozenset(
    {
        *("phase", "type", "reason", "restart_policy", "image_pull_policy", "access_modes"),
        *("volume_mode", "persistent_volume_reclaim_policy", "reclaim_policy", "resize", "state"),
        *("medium", "dequeue_strategy", "strategy"),
    }
)
"""Fields with terms of the API, where other values are possible."""
_TIMES = frozenset(
    {
        *("creation_timestamp", "deletion_timestamp", "last_transition_time", "start_time"),
        *("acquire_time", "renew_time", "time"),
    }
)
_EMPTY = frozenset({"message", "transition_id", "resource_version"})
_LABEL_KEYS = frozenset(
    {"topology_key", "topology_keys", "match_label_keys", "mismatch_label_keys"}
)
_LABELS = frozenset({"labels", "match_labels", "node_selector", "selector"})
_AMOUNTS = frozenset(
    {
        *("requests", "limits", "overhead", "allocated_resources", "capacity", "allocatable"),
        *("min_resources", "capability", "deserved", "allocated", "pod_fixed", "resource"),
        "maximum_volume_size",
    }
)
_KEYED = (LabelSelectorRequirement, NodeSelectorRequirement, TopologySelectorLabelRequirement)
_FIELD = "metadata.name"
_RELEASE = re.compile(r"v?[0-9]{1,4}(\.[0-9]{1,6}){1,2}")
_TIME = re.compile(r"[0-9TZ:.+-]{1,40}")
_AMOUNT = re.compile(r"[0-9.+-]{1,40}([eE][0-9+-]{1,4}|[numkKMGTPE]?i?)")
NOT_ANONYMISABLE: tuple[type[KubeObject], ...] = (
    NodeGroup,
    MutatingWebhookConfiguration,
    ValidatingWebhookConfiguration,
)
"""Kinds with free text and certificates, in which names cannot be found and replaced."""


def release_of(version: str) -> str:
    """Return the release of a version: `v1.36.4` of `v1.36.4-whose-build`."""
    found = _RELEASE.match(version)
    return found[0] if found else ""


class Anonymiser:
    """Replaces the names in objects, in place."""

    def __init__(self, names: Pseudonyms) -> None:
        self.names = names
        self._plan = functools.cache(self._planned)
        self._special: dict[type[msgspec.Struct], Callable[[Any], None]] = {
            ObjectMeta: self._meta,
            OwnerReference: self._owner,
            Taint: self._mark,
            Toleration: self._mark,
            PodSchedulingGate: self._gate,
            ContainerPort: self._port,
            **dict.fromkeys(_KEYED, self._requirement),
        }

    def __call__(self, obj: KubeObject) -> None:
        """Replace all names in the object."""
        self._struct(obj)

    def _struct(self, struct: msgspec.Struct) -> msgspec.Struct:
        special = self._special.get(type(struct))
        if special is not None:
            special(struct)
            return struct
        for field, change in self._plan(type(struct)):
            value = getattr(struct, field)
            if value:
                setattr(struct, field, change(value))
        return struct

    def _planned(self, kind: type[msgspec.Struct]) -> FieldChanges:
        """Return the changes for the fields of a type."""
        fields = (one.name for one in msgspec.structs.fields(kind))
        ours = {*_CHECKED, *(("api_version", "kind") if issubclass(kind, KubeObject) else ())}
        return tuple((name, self._change(name)) for name in fields if name not in ours)

    def _change(self, field: str) -> FieldChange:
        if field in _EMPTY:
            return lambda _: ""
        for fields, change in (
            (_TERMS, self._terms),
            (_TIMES, self._time),
            (_LABEL_KEYS, self._keys),
            (_LABELS, self._labels),
            (_AMOUNTS, self._amounts),
            (("kubelet_version",), release_of),
            (("api_version",), self.names.group),
            (("kind",), self._kind),
            (("status",), self._status),
        ):
            if field in fields:
                return change
        return self._other

    def _terms(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self.names.term(one) for one in value]
        return self.names.term(value) if isinstance(value, str) else self._other(value)

    def _time(self, value: str) -> str:
        return value if _TIME.fullmatch(value) else self.names.name(value)

    def _kind(self, value: str) -> str:
        return value if value in wellknown.KINDS else self.names.name(value)

    def _status(self, value: Any) -> Any:
        """Anonymise a status: a struct of an object, a term of a condition."""
        return self.names.term(value) if isinstance(value, str) else self._struct(value)

    def _other(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.names.name(value)
        if isinstance(value, msgspec.Struct):
            return self._struct(value)
        if isinstance(value, list):
            return [self._other(one) for one in value]
        if isinstance(value, dict):
            return {self.names.name(key): self._times(one) for key, one in value.items()}
        return value

    def _times(self, value: Any) -> Any:
        """Anonymise a value by name: an eviction's time, a task's minimum."""
        if isinstance(value, str):
            return self._time(value)
        return value if isinstance(value, int) else self._other(value)

    def _keys(self, value: str | list[str]) -> str | list[str]:
        if isinstance(value, str):
            return self.names.key(value)
        return [self.names.key(one) for one in value]

    def _labels(self, value: Any) -> Any:
        if not isinstance(value, dict):  # a selector with expressions, or a node selector's terms
            return self._other(value)
        return {self.names.key(k): self.names.value(k, v) for k, v in value.items()}

    def _amounts(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {self.names.resource(name): self._amount(one) for name, one in value.items()}
        if isinstance(value, str):  # a capacity; `pods` of a consumer
            return value if value == PODS else self._amount(value)
        return value if isinstance(value, int | float) else self._other(value)

    def _amount(self, value: str | float) -> str | float:
        """Anonymise an amount; an invalid one stays invalid."""
        if isinstance(value, str) and not _AMOUNT.fullmatch(value):
            return self.names.name(value)
        return value

    def _meta(self, meta: ObjectMeta) -> None:
        name = self.names.name
        meta.name, meta.namespace, meta.uid = name(meta.name), name(meta.namespace), name(meta.uid)
        meta.generate_name, meta.resource_version = name(meta.generate_name), ""
        meta.labels = self._labels(meta.labels)
        for field in ("creation_timestamp", "deletion_timestamp"):
            if moment := getattr(meta, field):
                setattr(meta, field, self._time(moment))
        meta.annotations = {key: self._note(key, text) for key, text in meta.annotations.items()}
        meta.finalizers = [self.names.key(one) for one in meta.finalizers]
        for owner in meta.owner_references:
            self._owner(owner)

    def _note(self, key: str, text: str) -> str:
        if key != PUBLISHED_LIMITS:
            return self.names.note(text)
        try:
            noted = msgspec.json.decode(text, type=dict[str, str | int])
        except msgspec.DecodeError:
            return ""
        return msgspec.json.encode(self._published(noted)).decode()

    def _published(self, noted: Mapping[str, str | int]) -> dict[str, str | int]:
        """Anonymise published limits: rules by resource (Node), limits by driver (CSINode)."""
        return {
            self.names.resource(key)
            if isinstance(value, str)
            else self.names.name(key): self.names.name(value) if isinstance(value, str) else value
            for key, value in noted.items()
        }

    def _owner(self, owner: OwnerReference) -> None:
        owner.name, owner.uid = self.names.name(owner.name), self.names.name(owner.uid)
        owner.kind, owner.api_version = (
            self._kind(owner.kind),
            self.names.group(owner.api_version),
        )

    def _mark(self, mark: Taint | Toleration) -> None:
        mark.value = self.names.value(mark.key, mark.value)
        mark.key = self.names.key(mark.key) if mark.key else ""

    def _gate(self, gate: PodSchedulingGate) -> None:
        gate.name = self.names.key(gate.name)

    def _port(self, port: ContainerPort) -> None:
        port.host_ip = self.names.address(port.host_ip)

    def _requirement(self, one: Any) -> None:
        key, names = one.key, self.names
        one.values = [names.name(v) if key == _FIELD else names.value(key, v) for v in one.values]
        one.key = names.key(key)
