"""Queueing hints: whether a change may unblock a pod that was refused.

A decision that finds no node names the plugins that refused (`Decision.plugins`). A pod waits until
something changes that may help by the hint of one of them; see `bayplan.fit.plugins.hints`. A
change is a `ClusterEvent`, reported once it is in the snapshot. What is not an object counts as the
pod it is about: a forgotten assumption is a pod deleted from the node it was assumed on, a cleared
nomination one that was nominated before and is not after.
"""

from __future__ import annotations

from collections.abc import Collection

from bayplan.fit.plugins.hints import ClusterEvent, EventAction, UnschedulablePod, counted_node
from bayplan.fit.plugins.registry import BY_NAME
from bayplan.fit.signatures.signature import SignatureCache
from bayplan.fit.snapshot import Snapshot
from bayplan.kube.pods import Pod
from bayplan.kube.workloads import PriorityClass

__all__ = ["ClusterEvent", "EventAction", "may_concern", "may_unblock"]


def may_unblock(
    snapshot: Snapshot, pod: Pod, plugins: Collection[str], event: ClusterEvent
) -> bool:
    """Whether a change may help a pod that these plugins refused; True when unsure.

    Where no plugin refused (there were no nodes, or something failed) any change may help.
    """
    if event.kind is Pod and event.key == pod.key:
        return _changes_itself(event, snapshot.cluster.signatures)
    if not plugins or event.kind is PriorityClass:
        return True
    if event.kind is Pod and _changes_priority(event):
        return True
    cluster = snapshot.cluster
    plugin_set = snapshot.profile.plugins_for(pod)
    pending = UnschedulablePod(pod, cluster, plugin_set)
    return any(_may_help(plugin, pending, event) for plugin in plugins)


def may_concern(plugins: Collection[str], event: ClusterEvent) -> bool:
    """Whether a change may help any pod that these plugins refused; cheap, and True when unsure."""
    if not plugins or event.kind is PriorityClass:
        return True
    if event.kind is Pod and _changes_priority(event):
        return True
    known = (BY_NAME.get(plugin) for plugin in plugins)
    return any(plugin is None or event.kind in plugin.hints for plugin in known)


def _may_help(plugin: str, pending: UnschedulablePod, event: ClusterEvent) -> bool:
    known = BY_NAME.get(plugin)
    if known is None:  # not one of ours: who knows
        return True
    hint = known.hints.get(event.kind)
    return hint is not None and hint(pending, event)


def _changes_itself(event: ClusterEvent, signatures: SignatureCache) -> bool:
    """The pod itself changed in a way that filters may see."""
    before, after = event.before, event.after
    if not isinstance(before, Pod) or not isinstance(after, Pod):
        return True
    return (
        before.spec != after.spec
        or before.metadata.labels != after.metadata.labels
        or before.metadata.uid != after.metadata.uid
        or before.status.resource_claim_statuses != after.status.resource_claim_statuses
        or signatures.of(before) is not signatures.of(after)
    )


def _changes_priority(event: ClusterEvent) -> bool:
    """A pod that is nominated for a node has another priority: others may no longer yield to it."""
    before, after = event.before, event.after
    if not isinstance(before, Pod) or not isinstance(after, Pod):
        return False
    ranks = (before.spec.priority, before.spec.priority_class_name)
    return bool(counted_node(before)) and ranks != (
        after.spec.priority,
        after.spec.priority_class_name,
    )
