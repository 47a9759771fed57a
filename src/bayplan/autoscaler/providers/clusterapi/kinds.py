"""Cluster API's kinds, as far as they are read: v1beta1's fields, and v1beta2's where they moved.

All of them are read by whichever version the server prefers.
"""

from __future__ import annotations

import msgspec

from bayplan.kube.meta import Count, KubeObject, Labels, LabelSelector, Struct


class InfrastructureRef(Struct):
    """The template of a machine's infrastructure; v1beta2 names its group only."""

    api_version: str = ""
    api_group: str = ""
    kind: str = ""
    name: str = ""


class TemplateMeta(Struct):
    """What machines get of their template."""

    labels: Labels = {}


class TemplateTaint(Struct):
    """A taint of the nodes to come, as somebody wrote it."""

    key: str = ""
    value: str = ""
    effect: str = ""


class MachineTemplateSpec(Struct):
    """What machines are made from."""

    infrastructure_ref: InfrastructureRef | None = None
    taints: list[TemplateTaint] = []


class MachineTemplate(Struct):
    """What machines look like."""

    metadata: TemplateMeta = msgspec.field(default_factory=TemplateMeta)
    spec: MachineTemplateSpec = msgspec.field(default_factory=MachineTemplateSpec)


class ScalableSpec(Struct):
    """How many machines are wanted, and of what kind."""

    cluster_name: str = ""
    replicas: Count | None = None
    selector: LabelSelector | None = None
    template: MachineTemplate = msgspec.field(default_factory=MachineTemplate)
    provider_id_list: list[str] = msgspec.field(default_factory=list, name="providerIDList")
    paused: bool = False


class ScalableStatus(Struct):
    """How many machines there are."""

    replicas: int = 0


class Scalable(KubeObject):
    """What can be a node group."""

    spec: ScalableSpec = msgspec.field(default_factory=ScalableSpec)
    status: ScalableStatus = msgspec.field(default_factory=ScalableStatus)


class MachineDeployment(Scalable):
    """Machines that are replaced in an orderly way, by MachineSets."""


class MachineSet(Scalable):
    """Equal machines."""


class MachinePool(Scalable):
    """Equal machines that the infrastructure itself keeps."""


class MachineSpec(Struct):
    """A machine as it is wanted."""

    cluster_name: str = ""
    provider_id: str = msgspec.field(default="", name="providerID")


class NodeReference(Struct):
    """The node that a machine became."""

    name: str = ""


class Failure(Struct):
    """Why a machine will never be one, in the words of v1beta1."""

    failure_reason: str = ""
    failure_message: str = ""


class Deprecated(Struct):
    """Where v1beta2 keeps what it does not use any more."""

    v1beta1: Failure = msgspec.field(default_factory=Failure)


class MachineStatus(Struct):
    """How far a machine is."""

    phase: str = ""
    node_ref: NodeReference | None = None
    failure_reason: str = ""
    failure_message: str = ""
    deprecated: Deprecated = msgspec.field(default_factory=Deprecated)

    @property
    def failure(self) -> Failure | None:
        """What went wrong for good; None if nothing did."""
        old = self.deprecated.v1beta1
        reason = self.failure_reason or old.failure_reason
        message = self.failure_message or old.failure_message
        if not reason and not message and self.phase != "Failed":
            return None
        return Failure(failure_reason=reason, failure_message=message)


class Machine(KubeObject):
    """One machine."""

    spec: MachineSpec = msgspec.field(default_factory=MachineSpec)
    status: MachineStatus = msgspec.field(default_factory=MachineStatus)
