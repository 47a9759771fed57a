"""Pods at admission: the gate that queue admission will remove, and invalid annotations.

Everything may be null, as clients write what they leave out.

The gate is for pods of our own schedulers alone, since no other would ever remove it; and for
pods that still need a node, since the API server takes no gates from the others.

Refused are attach limits as requested resources (a node has them, a pod cannot request them), and
invalid annotations about queues and groups.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

import msgspec

from bayplan.admission.review import FieldFault, PatchOperation
from bayplan.base.values import shorten
from bayplan.kube.meta import Struct
from bayplan.kube.names import is_subdomain
from bayplan.kube.resources import is_attach_limit
from bayplan.kube.volcano import (
    GATE_ANNOTATIONS,
    GROUP_MIN_MEMBER,
    GROUP_NAME_ANNOTATIONS,
    PREEMPTABLE,
    QUEUE_NAME_ANNOTATIONS,
    QUEUE_SCHEDULING_GATE,
)

DEFAULT_SCHEDULER = "default-scheduler"
Amounts = dict[str, object] | None


class DraftGate(Struct):
    """A scheduling gate."""

    name: str | None = None


class DraftResources(Struct):
    """The requests and limits of a container or pod."""

    requests: Amounts = None
    limits: Amounts = None


class DraftContainer(Struct):
    """A container."""

    name: str | None = None
    resources: DraftResources | None = None


class DraftMeta(Struct):
    """The metadata of a pod."""

    annotations: dict[str, str] | None = None


class DraftSpec(Struct):
    """The spec of a pod."""

    scheduler_name: str | None = None
    node_name: str | None = None
    scheduling_gates: list[DraftGate] | None = None
    containers: list[DraftContainer] | None = None
    init_containers: list[DraftContainer] | None = None
    ephemeral_containers: list[DraftContainer] | None = None
    resources: DraftResources | None = None
    overhead: Amounts = None


class PodDraft(Struct):
    """A pod to be admitted."""

    metadata: DraftMeta | None = None
    spec: DraftSpec = msgspec.field(default_factory=DraftSpec)

    @property
    def annotations(self) -> Mapping[str, str]:
        """The pod's annotations."""
        return (self.metadata.annotations if self.metadata is not None else None) or {}

    @property
    def scheduler(self) -> str:
        """The name of the pod's scheduler."""
        return self.spec.scheduler_name or DEFAULT_SCHEDULER

    def amounts(self) -> Iterator[tuple[str, Mapping[str, object]]]:
        """Yield every map of resources in the pod, with its field path."""
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


_GATES = "/spec/schedulingGates"
_MOST_DIGITS = 9


def gate_patch(pod: PodDraft, schedulers: Collection[str]) -> tuple[PatchOperation, ...]:
    """Return the patch that adds the gate; empty if the pod needs none or has it."""
    if pod.scheduler not in schedulers or pod.spec.node_name or not _asks_for_gate(pod):
        return ()
    gate = {"name": QUEUE_SCHEDULING_GATE}
    held = pod.spec.scheduling_gates
    if held is None:
        return ({"op": "add", "path": _GATES, "value": [gate]},)
    if any(one.name == QUEUE_SCHEDULING_GATE for one in held):
        return ()
    return ({"op": "add", "path": f"{_GATES}/-", "value": gate},)


def _asks_for_gate(pod: PodDraft) -> bool:
    return any(pod.annotations.get(name) == "true" for name in GATE_ANNOTATIONS)


def attach_limit_faults(pod: PodDraft) -> Iterator[FieldFault]:
    """Yield faults for requested attach limits, which only nodes can have."""
    for place, amounts in pod.amounts():
        for name in amounts:
            if is_attach_limit(name):
                yield FieldFault(
                    f"{place}[{name}]",
                    "is how many volumes a node can attach, which a pod cannot request; a pod's"
                    " volumes are counted without it",
                )


def annotation_faults(pod: PodDraft) -> Iterator[FieldFault]:
    """Yield faults of the annotations for queue and group."""
    yield from _names(pod, GROUP_NAME_ANNOTATIONS, "PodGroup")
    yield from _names(pod, QUEUE_NAME_ANNOTATIONS, "queue")
    yield from _words(pod, (*GATE_ANNOTATIONS, PREEMPTABLE))
    written = pod.annotations.get(GROUP_MIN_MEMBER)
    if written is not None and not _is_count(written):
        yield _fault(GROUP_MIN_MEMBER, written, "must be a whole number, 1 or more")


def _names(pod: PodDraft, keys: Collection[str], what: str) -> Iterator[FieldFault]:
    """Yield names that are invalid, or that contradict each other."""
    names = {key: pod.annotations[key] for key in keys if pod.annotations.get(key)}
    bad = {key: name for key, name in names.items() if not is_subdomain(name)}
    for key, name in bad.items():
        yield _fault(key, name, f"cannot be the name of a {what}")
    if not bad and len(set(names.values())) > 1:
        both = " and ".join(f"{key} is {name}" for key, name in names.items())
        yield FieldFault("metadata.annotations", f"name more than one {what}: {both}")


def _words(pod: PodDraft, keys: Collection[str]) -> Iterator[FieldFault]:
    for key in keys:
        written = pod.annotations.get(key)
        if written is not None and written not in {"true", "false"}:
            yield _fault(key, written, "must be true or false")


def _is_count(written: str) -> bool:
    is_number = written.isascii() and written.isdecimal() and len(written) <= _MOST_DIGITS
    return is_number and int(written) > 0


def _fault(key: str, written: str, problem: str) -> FieldFault:
    return FieldFault(f"metadata.annotations[{key}]", f"{shorten(written)} {problem}")
