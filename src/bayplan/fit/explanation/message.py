"""The one line that says why a pod fits nowhere: kube-scheduler's own, to the letter."""

from __future__ import annotations

from bayplan.fit.evaluation.verdicts import Verdicts
from bayplan.fit.plugins.registry import deallocates_claims
from bayplan.fit.preemption import Preemption
from bayplan.fit.refusal import UNRESOLVABLE, Refusal, summary, summary_before_nodes
from bayplan.fit.requirements.devices import NO_DEVICES
from bayplan.fit.snapshot import Snapshot
from bayplan.kube.pods import Pod

NO_NODES = "no nodes available to schedule pods"
NO_CLAIMS = "no new claims to deallocate"
"""What kube-scheduler's plugin for dynamic resources says of a pod that has no claims."""
NO_CLAIMS_HELP = "still not schedulable"
"""What it says of one whose claims it could not take back."""
NO_STATE = "not found"
"""What it says where it was not asked before."""


def unschedulable_message(snapshot: Snapshot, pod: Pod, preemption: Preemption | None) -> str:
    """Why a pod that fits nowhere does not, and what preemption came to if it was tried."""
    found = snapshot.verdicts(pod)
    if isinstance(found, Refusal):
        return message_before_nodes(snapshot, pod, found, preemption)
    return message_of(snapshot, pod, found, preemption)


def message_before_nodes(
    snapshot: Snapshot, pod: Pod, refusal: Refusal, preemption: Preemption | None
) -> str:
    """The line for a pod that is refused before any node is looked at.

    Of a pod whose claims to devices are missing kube-scheduler writes nothing; that is said here
    as it is.
    """
    devices, count = snapshot.requirements_of(pod).devices, len(snapshot.cluster.slots)
    if devices.missing:
        return devices.missing
    line = summary_before_nodes(count, refusal) if count else NO_NODES
    if preemption is not None and count and _is_cut_short(snapshot, pod, refusal):
        return f"{line} {NO_STATE}"
    return _with_preemption(snapshot, pod, line, preemption)


def _is_cut_short(snapshot: Snapshot, pod: Pod, refusal: Refusal) -> bool:
    """Whether kube-scheduler's plugin for dynamic resources was not asked before the refusal; it
    then fails afterwards, and preemption is not tried.
    """
    lasting = refusal.code == UNRESOLVABLE and not deallocates_claims(refusal.plugin)
    return lasting and snapshot.profile.plugins_for(pod).deallocates_claims


def message_of(snapshot: Snapshot, pod: Pod, found: Verdicts, preemption: Preemption | None) -> str:
    """The line for a pod that every node refuses."""
    count = len(snapshot.cluster.slots)
    line = summary(count, _reasons(found)) if count else NO_NODES
    return _with_preemption(snapshot, pod, line, preemption)


def _with_preemption(snapshot: Snapshot, pod: Pod, line: str, preemption: Preemption | None) -> str:
    said = preemption.message if preemption is not None else ""
    if not said or not len(snapshot.cluster.slots):
        return line
    if snapshot.profile.plugins_for(pod).deallocates_claims:
        devices = snapshot.requirements_of(pod).devices
        looks = devices != NO_DEVICES and devices.ready
        said = f"{NO_CLAIMS_HELP if looks else NO_CLAIMS}, {said}"
    return f"{line} {said}"


def _reasons(found: Verdicts) -> list[str]:
    return [
        reason
        for refusal in found.refusals.values()
        for reason in (refusal.summarised or refusal.reasons)
    ]
