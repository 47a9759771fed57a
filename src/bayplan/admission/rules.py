"""The paths of the webhook, and the rule of each.

| path | request | rule |
|---|---|---|
| /pods/mutate | a new pod | it gets the gate, if it asks for it |
| /pods/validate | a new pod | no attach limits, no annotations without sense |
| /queues/validate | a queue made, changed or deleted; its status | the tree of queues stays sound |
| /podgroups/validate | a group made or changed | its counts, amounts and queue |

A request about anything else is allowed: an API server may send more than the configuration
selects.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar, cast

import msgspec

from bayplan.admission.pods import POD, annotation_faults, attach_limit_faults, gate_patch
from bayplan.admission.queue_index import QueueIndex
from bayplan.admission.queues import review_deletion, review_group, review_queue, review_state
from bayplan.admission.review import ADMITTED, ReviewError, ReviewRequest, ReviewResponse, read_part
from bayplan.kube.codec import KINDS, ObjectError, decode_as
from bayplan.kube.gates import ATTACH_VOLUME_LIMIT, QUEUE_ALLOCATION_GATE, FeatureGates
from bayplan.kube.meta import KubeObject
from bayplan.kube.volcano import GROUP, PodGroup, Queue

K = TypeVar("K", bound=KubeObject)
MUTATE_PODS = "/pods/mutate"
VALIDATE_PODS = "/pods/validate"
VALIDATE_QUEUES = "/queues/validate"
VALIDATE_GROUPS = "/podgroups/validate"
NEED_QUEUES = (VALIDATE_QUEUES, VALIDATE_GROUPS)
"""The paths that need the queues."""

Rule = Callable[[ReviewRequest], ReviewResponse]


@dataclass(frozen=True, slots=True)
class AdmissionSettings:
    """The names of our schedulers, and the feature gates."""

    schedulers: frozenset[str] = frozenset({"bayplan"})
    gates: FeatureGates = field(default_factory=FeatureGates)


class AdmissionRules:
    """The rules by path."""

    def __init__(self, settings: AdmissionSettings, index: QueueIndex) -> None:
        self._settings = settings
        self._index = index
        self.by_path: Mapping[str, Rule] = {
            MUTATE_PODS: self._mutate_pod,
            VALIDATE_PODS: self._validate_pod,
            VALIDATE_QUEUES: self._validate_queue,
            VALIDATE_GROUPS: self._validate_group,
        }

    def _mutate_pod(self, request: ReviewRequest) -> ReviewResponse:
        if not _is_new_pod(request) or not self._settings.gates.enabled(QUEUE_ALLOCATION_GATE):
            return ADMITTED
        pod = read_part(POD, request.object)
        return ReviewResponse(patch=gate_patch(pod, self._settings.schedulers))

    def _validate_pod(self, request: ReviewRequest) -> ReviewResponse:
        if not _is_new_pod(request):
            return ADMITTED
        pod, settings = read_part(POD, request.object), self._settings
        faults = [*annotation_faults(pod)] if pod.scheduler in settings.schedulers else []
        if settings.gates.enabled(ATTACH_VOLUME_LIMIT):
            faults += attach_limit_faults(pod)
        return ReviewResponse(tuple(faults))

    def _validate_queue(self, request: ReviewRequest) -> ReviewResponse:
        if not _is_about(request, "queues", "", "status"):
            return ADMITTED
        if request.operation == "DELETE":
            # Where many are deleted at once, only the object says which it is.
            name = request.name or _decoded(request.old_object, Queue).name
            return review_deletion(name, self._index)
        queue, old = _now_and_before(request, Queue)
        if not request.sub_resource:
            return review_queue(queue, old, self._index)
        return review_state(queue, old, self._index) if old is not None else ADMITTED

    def _validate_group(self, request: ReviewRequest) -> ReviewResponse:
        if not _is_about(request, "podgroups", "") or request.operation == "DELETE":
            return ADMITTED
        return review_group(*_now_and_before(request, PodGroup), self._index)


def _is_new_pod(request: ReviewRequest) -> bool:
    asked = request.resource
    is_pod = (asked.group, asked.resource, request.sub_resource) == ("", "pods", "")
    return is_pod and request.operation == "CREATE"


def _is_about(request: ReviewRequest, resource: str, *subresources: str) -> bool:
    asked = request.resource
    is_ours = (asked.group, asked.resource) == (GROUP, resource)
    return is_ours and request.sub_resource in subresources


def _now_and_before(request: ReviewRequest, kind: type[K]) -> tuple[K, K | None]:
    """Return the object, and for an update also the old object."""
    now = _decoded(request.object, kind)
    return now, _decoded(request.old_object, kind) if request.operation == "UPDATE" else None


def _decoded(raw: msgspec.Raw, kind: type[K]) -> K:
    """Decode an object of a kind; ReviewError, with the field, if it is invalid."""
    try:
        return cast("K", decode_as(KINDS[kind.__name__], raw))
    except ObjectError as error:
        raise ReviewError(str(error)) from None
