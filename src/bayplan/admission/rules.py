"""What is asked where: each path of the webhook, and the rule that answers it.

| path | question | rule |
|---|---|---|
| /pods/mutate | a new pod | it gets the gate, if it asks for it |
| /pods/validate | a new pod | no attach limits, no annotations without sense |
| /queues/validate | a queue made, changed or deleted; its status | the tree of queues stays sound |
| /podgroups/validate | a group made or changed | its counts, amounts and queue |

A question about anything else is answered with yes: whoever sends more than the configuration asks
for shall not be harmed by it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar, cast

import msgspec

from bayplan.admission.book import QueueBook
from bayplan.admission.pods import POD, annotation_faults, attach_limit_faults, gate_patch
from bayplan.admission.queues import judge_deletion, judge_group, judge_queue, judge_state
from bayplan.admission.review import ADMITTED, Question, ReviewError, Verdict, read_part
from bayplan.kube.codec import KINDS, ObjectError, decode_as
from bayplan.kube.gates import ATTACH_VOLUME_LIMIT, QUEUE_ALLOCATION_GATE, FeatureGates
from bayplan.kube.meta import KubeObject
from bayplan.kube.queueing import GROUP, PodGroup, Queue

K = TypeVar("K", bound=KubeObject)
MUTATE_PODS = "/pods/mutate"
VALIDATE_PODS = "/pods/validate"
VALIDATE_QUEUES = "/queues/validate"
VALIDATE_GROUPS = "/podgroups/validate"
NEED_QUEUES = (VALIDATE_QUEUES, VALIDATE_GROUPS)
"""The paths that cannot be answered without knowing the queues."""

Rule = Callable[[Question], Verdict]


@dataclass(frozen=True, slots=True)
class AdmissionSettings:
    """Whose pods are ours, and which features are on."""

    schedulers: frozenset[str] = frozenset({"bayplan"})
    gates: FeatureGates = field(default_factory=FeatureGates)


class AdmissionRules:
    """Every rule, by its path."""

    def __init__(self, settings: AdmissionSettings, book: QueueBook) -> None:
        self._settings = settings
        self._book = book
        self.by_path: Mapping[str, Rule] = {
            MUTATE_PODS: self._mutate_pod,
            VALIDATE_PODS: self._validate_pod,
            VALIDATE_QUEUES: self._validate_queue,
            VALIDATE_GROUPS: self._validate_group,
        }

    def _mutate_pod(self, question: Question) -> Verdict:
        if not _is_new_pod(question) or not self._settings.gates.enabled(QUEUE_ALLOCATION_GATE):
            return ADMITTED
        pod = read_part(POD, question.object)
        return Verdict(patch=gate_patch(pod, self._settings.schedulers))

    def _validate_pod(self, question: Question) -> Verdict:
        if not _is_new_pod(question):
            return ADMITTED
        pod, settings = read_part(POD, question.object), self._settings
        faults = [*annotation_faults(pod)] if pod.scheduler in settings.schedulers else []
        if settings.gates.enabled(ATTACH_VOLUME_LIMIT):
            faults += attach_limit_faults(pod)
        return Verdict(tuple(faults))

    def _validate_queue(self, question: Question) -> Verdict:
        if not _is_about(question, "queues", "", "status"):
            return ADMITTED
        if question.operation == "DELETE":
            # Where many are deleted at once, only the object says which it is.
            name = question.name or _decoded(question.old_object, Queue).name
            return judge_deletion(name, self._book)
        queue, old = _now_and_before(question, Queue)
        if not question.sub_resource:
            return judge_queue(queue, old, self._book)
        return judge_state(queue, old, self._book) if old is not None else ADMITTED

    def _validate_group(self, question: Question) -> Verdict:
        if not _is_about(question, "podgroups", "") or question.operation == "DELETE":
            return ADMITTED
        return judge_group(*_now_and_before(question, PodGroup), self._book)


def _is_new_pod(question: Question) -> bool:
    asked = question.resource
    is_pod = (asked.group, asked.resource, question.sub_resource) == ("", "pods", "")
    return is_pod and question.operation == "CREATE"


def _is_about(question: Question, resource: str, *subresources: str) -> bool:
    asked = question.resource
    is_ours = (asked.group, asked.resource) == (GROUP, resource)
    return is_ours and question.sub_resource in subresources


def _now_and_before(question: Question, kind: type[K]) -> tuple[K, K | None]:
    """The object, and what it was if it was there before."""
    now = _decoded(question.object, kind)
    return now, _decoded(question.old_object, kind) if question.operation == "UPDATE" else None


def _decoded(raw: msgspec.Raw, kind: type[K]) -> K:
    """An object of one of our kinds; ReviewError, with the place, if it is none."""
    try:
        return cast("K", decode_as(KINDS[kind.__name__], raw))
    except ObjectError as error:
        raise ReviewError(str(error)) from None
