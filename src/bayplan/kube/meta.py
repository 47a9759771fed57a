"""What every Kubernetes object has: metadata, labels, owners."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

Labels = dict[str, str]
Int32 = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
Count = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
Positive = Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)]
Size = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
Port = Annotated[int, msgspec.Meta(ge=0, le=65535)]
Weight = Annotated[int, msgspec.Meta(ge=1, le=100)]
Quantity = str | int | float
"""A quantity as written; `bayplan.kube.quantity` has its exact value."""


class Struct(
    msgspec.Struct, kw_only=True, rename="camel", omit_defaults=True, gc=False, dict=False
):
    """Base of all API types: camelCase on the wire, defaults omitted."""


class OwnerReference(Struct):
    """An owner of an object."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False
    block_owner_deletion: bool = False


class ObjectMeta(Struct):
    """The metadata of an object."""

    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: Int64 = 0
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: Int64 | None = None
    labels: Labels = {}
    annotations: Labels = {}
    owner_references: list[OwnerReference] = []
    finalizers: list[str] = []

    @property
    def controller(self) -> OwnerReference | None:
        """The owner that manages this object, if it has one."""
        return next((owner for owner in self.owner_references if owner.controller), None)


class KubeObject(Struct):
    """An object of the Kubernetes API."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)

    @property
    def name(self) -> str:
        """The object's name."""
        return self.metadata.name

    @property
    def namespace(self) -> str:
        """The object's namespace, empty for a cluster-scoped one."""
        return self.metadata.namespace

    @property
    def key(self) -> str:
        """`namespace/name`, or just the name for a cluster-scoped object."""
        meta = self.metadata
        return f"{meta.namespace}/{meta.name}" if meta.namespace else meta.name


class LabelSelectorRequirement(Struct):
    """One expression of a label selector."""

    key: str
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"]
    values: list[str] = []


class LabelSelector(Struct):
    """A label selector as written; `bayplan.kube.selectors` compiles it."""

    match_labels: Labels = {}
    match_expressions: list[LabelSelectorRequirement] = []


class ObjectReference(Struct):
    """A reference to another object."""

    api_version: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""


class Condition(Struct):
    """A condition in an object's status."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: str | None = None
