"""The fields of pods and attachments that controllers read, decoded once per change."""

from __future__ import annotations

from datetime import datetime
from functools import cached_property

import msgspec

from bayplan.kube.codec import without_nulls
from bayplan.kube.meta import OwnerReference, Struct
from bayplan.kube.pods import Toleration

TERMINAL = frozenset({"Succeeded", "Failed"})


class _Meta(Struct):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    creation_timestamp: str = ""
    deletion_timestamp: str = ""
    deletion_grace_period_seconds: int | None = None
    owner_references: list[OwnerReference] | None = None
    finalizers: list[str] | None = None


class _ClaimSource(Struct):
    claim_name: str = ""


class _Ephemeral(Struct):
    volume_claim_template: dict[str, object] | None = None


class _Volume(Struct):
    name: str = ""
    persistent_volume_claim: _ClaimSource | None = None
    ephemeral: _Ephemeral | None = None


class _Named(Struct):
    name: str = ""
    image: str = ""


class _Spec(Struct):
    node_name: str = ""
    restart_policy: str = "Always"
    volumes: list[_Volume] | None = None
    tolerations: list[Toleration] | None = None
    containers: list[_Named] = []
    priority: int = 0
    scheduler_name: str = ""
    scheduling_gates: list[_Named] | None = None


class _PodCondition(Struct):
    type: str = ""
    status: str = ""
    reason: str | None = None
    message: str | None = None
    last_transition_time: str | None = None


class _Status(Struct):
    phase: str = "Pending"
    start_time: str | None = None
    conditions: list[_PodCondition] | None = None


class PodFacts(Struct, dict=True, gc=True):
    """The fields of a pod that controllers read, at one version."""

    metadata: _Meta
    spec: _Spec
    status: _Status = msgspec.field(default_factory=_Status)

    @property
    def uid(self) -> str:
        """Its UID."""
        return self.metadata.uid

    @property
    def node(self) -> str:
        """The node that it is bound to, or ""."""
        return self.spec.node_name

    @property
    def phase(self) -> str:
        """Its phase."""
        return self.status.phase

    @property
    def is_terminating(self) -> bool:
        """Whether it is marked for deletion."""
        return bool(self.metadata.deletion_timestamp)

    @property
    def is_terminal(self) -> bool:
        """Whether it has succeeded or failed."""
        return self.status.phase in TERMINAL

    @cached_property
    def is_active(self) -> bool:
        """Whether a controller counts it: neither terminal nor terminating."""
        return not self.is_terminal and not self.is_terminating

    @cached_property
    def is_ready(self) -> bool:
        """Whether its Ready condition is True."""
        return self.has_condition("Ready")

    @property
    def ready_since(self) -> str:
        """When it became ready; empty if it is not."""
        found = self.condition("Ready")
        return found.last_transition_time or "" if found and found.status == "True" else ""

    @property
    def controller(self) -> OwnerReference | None:
        """The owner reference of its controller, or None."""
        owners = self.metadata.owner_references or ()
        return next((owner for owner in owners if owner.controller), None)

    @property
    def claims(self) -> list[str]:
        """The names of the claims that it uses, in its namespace."""
        found = []
        for volume in self.spec.volumes or ():
            if volume.persistent_volume_claim is not None:
                found.append(volume.persistent_volume_claim.claim_name)
            elif volume.ephemeral is not None:
                found.append(f"{self.metadata.name}-{volume.name}")
        return found

    def annotation(self, name: str) -> str:
        """Return the value of an annotation, or ""."""
        return (self.metadata.annotations or {}).get(name, "")

    def condition(self, type_: str) -> _PodCondition | None:
        """Return one of its conditions, or None."""
        for one in self.status.conditions or ():
            if one.type == type_:
                return one
        return None

    def has_condition(self, type_: str) -> bool:
        """Return whether a condition is True."""
        found = self.condition(type_)
        return found is not None and found.status == "True"


class _AttachmentSource(Struct):
    persistent_volume_name: str = ""


class _AttachmentSpec(Struct):
    attacher: str = ""
    node_name: str = ""
    source: _AttachmentSource = msgspec.field(default_factory=_AttachmentSource)


class _AttachmentStatus(Struct):
    attached: bool = False


class AttachmentFacts(Struct):
    """The fields of a VolumeAttachment that controllers read."""

    metadata: _Meta
    spec: _AttachmentSpec = msgspec.field(default_factory=_AttachmentSpec)
    status: _AttachmentStatus = msgspec.field(default_factory=_AttachmentStatus)

    @property
    def volume(self) -> str:
        """The volume's name."""
        return self.spec.source.persistent_volume_name


def moment(text: str) -> float:
    """Return a timestamp of the API as seconds since the epoch."""
    return datetime.fromisoformat(text).timestamp()


_decode_pod = msgspec.json.Decoder(PodFacts).decode
_decode_attachment = msgspec.json.Decoder(AttachmentFacts).decode


def read_pod(data: bytes) -> PodFacts:
    """Decode a stored pod; nulls count as absent."""
    try:
        return _decode_pod(data)
    except msgspec.ValidationError:
        return msgspec.convert(without_nulls(msgspec.json.decode(data)), PodFacts)


def read_attachment(data: bytes) -> AttachmentFacts:
    """Decode a stored attachment; nulls count as absent."""
    try:
        return _decode_attachment(data)
    except msgspec.ValidationError:
        return msgspec.convert(without_nulls(msgspec.json.decode(data)), AttachmentFacts)
