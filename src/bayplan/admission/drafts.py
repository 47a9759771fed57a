"""The parts of a pod that admission reads, before it is one.

Everything may be null, as clients write what they leave out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from bayplan.kube.meta import Struct

DEFAULT_SCHEDULER = "default-scheduler"
Amounts = dict[str, object] | None


class Gate(Struct):
    """A scheduling gate."""

    name: str | None = None


class DraftResources(Struct):
    """What is requested, and its limits."""

    requests: Amounts = None
    limits: Amounts = None


class DraftContainer(Struct):
    """A container."""

    name: str | None = None
    resources: DraftResources | None = None


class DraftMeta(Struct):
    """Who the pod is."""

    annotations: dict[str, str] | None = None


class DraftSpec(Struct):
    """What the pod asks for."""

    scheduler_name: str | None = None
    node_name: str | None = None
    scheduling_gates: list[Gate] | None = None
    containers: list[DraftContainer] | None = None
    init_containers: list[DraftContainer] | None = None
    ephemeral_containers: list[DraftContainer] | None = None
    resources: DraftResources | None = None
    overhead: Amounts = None


class PodDraft(Struct):
    """A pod that asks to be let in."""

    metadata: DraftMeta | None = None
    spec: DraftSpec = msgspec.field(default_factory=DraftSpec)

    @property
    def annotations(self) -> Mapping[str, str]:
        """The pod's annotations."""
        return (self.metadata.annotations if self.metadata is not None else None) or {}

    @property
    def scheduler(self) -> str:
        """Who is to place the pod."""
        return self.spec.scheduler_name or DEFAULT_SCHEDULER

    def amounts(self) -> Iterator[tuple[str, Mapping[str, object]]]:
        """Every map of resources in the pod, with its place."""
        spec = self.spec
        yield from _of("spec.resources", spec.resources)
        for field, containers in (
            ("containers", spec.containers),
            ("initContainers", spec.init_containers),
            ("ephemeralContainers", spec.ephemeral_containers),
        ):
            for index, container in enumerate(containers or ()):
                yield from _of(f"spec.{field}[{index}].resources", container.resources)
        yield "spec.overhead", spec.overhead or {}


POD = msgspec.json.Decoder(PodDraft)


def _of(place: str, found: DraftResources | None) -> Iterator[tuple[str, Mapping[str, object]]]:
    if found is not None:
        yield f"{place}.requests", found.requests or {}
        yield f"{place}.limits", found.limits or {}
