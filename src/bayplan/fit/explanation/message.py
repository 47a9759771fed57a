"""The one line for a pod that fits nowhere: kube-scheduler's own, to the letter."""

from __future__ import annotations

from bayplan.fit.decision import UNRESOLVABLE, Refusal, summary, summary_before_nodes
from bayplan.fit.evaluation.verdicts import Verdicts
from bayplan.fit.plugins.registry import message_without_state, post_filter_messages
from bayplan.fit.preemption import Preemption
from bayplan.fit.snapshot import Snapshot
from bayplan.kube.pods import Pod

NO_NODES = "no nodes available to schedule pods"


def unschedulable_message(snapshot: Snapshot, pod: Pod, preemption: Preemption | None) -> str:
    """Return the message for a pod that fits nowhere, with that of preemption if it was tried."""
    found = snapshot.verdicts(pod)
    if isinstance(found, Refusal):
        return message_before_nodes(snapshot, pod, found, preemption)
    return message_of(snapshot, pod, found, preemption)


def message_before_nodes(
    snapshot: Snapshot, pod: Pod, refusal: Refusal, preemption: Preemption | None
) -> str:
    """Return the line for a pod that is refused before any node is evaluated.

    kube-scheduler writes nothing for a pod whose ResourceClaims are missing; here they are named.
    """
    devices, count = snapshot.requirements_of(pod).devices, len(snapshot.cluster.slots)
    if devices.missing:
        return devices.missing
    line = summary_before_nodes(count, refusal) if count else NO_NODES
    if preemption is not None and count:
        failed = _failed_post_filter(snapshot, pod, refusal)
        if failed:
            return f"{line} {failed}"
    return _with_preemption(snapshot, pod, line, preemption)


def _failed_post_filter(snapshot: Snapshot, pod: Pod, refusal: Refusal) -> str:
    """Return the message of a plugin that did not run before the refusal; then there is no
    preemption.
    """
    if refusal.code != UNRESOLVABLE or not snapshot.profile.plugins_for(pod).reports_post_filters:
        return ""
    return message_without_state(refusal.plugin)


def message_of(snapshot: Snapshot, pod: Pod, found: Verdicts, preemption: Preemption | None) -> str:
    """Return the line for a pod that every node refuses."""
    count = len(snapshot.cluster.slots)
    line = summary(count, _reasons(found)) if count else NO_NODES
    return _with_preemption(snapshot, pod, line, preemption)


def _with_preemption(snapshot: Snapshot, pod: Pod, line: str, preemption: Preemption | None) -> str:
    message = preemption.message if preemption is not None else ""
    if not message or not len(snapshot.cluster.slots):
        return line
    if snapshot.profile.plugins_for(pod).reports_post_filters:
        message = ", ".join((*post_filter_messages(snapshot.requirements_of(pod)), message))
    return f"{line} {message}"


def _reasons(found: Verdicts) -> list[str]:
    return [
        reason
        for refusal in found.refusals.values()
        for reason in (refusal.summarised or refusal.reasons)
    ]
