"""What may help a pod that was refused: each plugin declares the kinds of objects whose changes
could, and for each a function that says whether this change may.

A plugin is asked only about pods that it was the first to refuse on some node (or before any node
was looked at). Its answer may be wrong in one direction alone: a pod that is woken in vain is
refused again, one that is not woken waits for nothing. So the rule is: when unsure, wake.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from bayplan.fit.events import Event
from bayplan.fit.plugin_set import DEFAULT_PLUGINS, PluginSet
from bayplan.fit.signatures.signature import PodSignature
from bayplan.fit.state.cluster import Cluster
from bayplan.fit.volumes.objects import claims_of
from bayplan.kube.meta import KubeObject
from bayplan.kube.nodes import Node
from bayplan.kube.pods import Pod


@dataclass(frozen=True, slots=True, eq=False)
class Waiting:
    """A pod that was refused."""

    pod: Pod
    cluster: Cluster
    plugins: PluginSet = DEFAULT_PLUGINS
    """What it is filtered by."""

    @property
    def signature(self) -> PodSignature:
        """What it asks for; worked out for those who ask, which most do not."""
        return self.cluster.signatures.of(self.pod)

    @property
    def claims(self) -> frozenset[str]:
        """The keys of the claims that it names."""
        return frozenset(claims_of(self.pod))


Hint = Callable[[Waiting, Event], bool]
"""Whether a change may unblock a pod."""
Hints = Mapping[type[KubeObject], Hint]
"""By kind; changes of other kinds cannot help."""


def any_change(waiting: Waiting, event: Event) -> bool:  # noqa: ARG001 - whatever it is
    """Unsure: wake."""
    return True


def arrival(waiting: Waiting, event: Event) -> bool:  # noqa: ARG001 - whoever waits
    """Something new came."""
    return event.before is None


def arrival_or_labels(waiting: Waiting, event: Event) -> bool:  # noqa: ARG001 - whoever waits
    """Something new came, or has other labels."""
    before, after = event.before, event.after
    if after is None:
        return False
    return before is None or before.metadata.labels != after.metadata.labels


def own_claim(waiting: Waiting, event: Event) -> bool:
    """One of the pod's own claims came or changed."""
    return event.after is not None and event.key in waiting.claims


def newly(event: Event, suits: Callable[[Node], bool]) -> bool:
    """A node suits that was not there, or did not suit before."""
    before, after = event.before, event.after
    if not isinstance(after, Node) or not suits(after):
        return False
    return not isinstance(before, Node) or not suits(before)


def place_of(pod: KubeObject | None) -> str:
    """The node where a pod counts: its own, or the one that it is nominated for; empty if none."""
    if not isinstance(pod, Pod) or pod.is_terminal:
        return ""
    return pod.spec.node_name or pod.status.nominated_node_name


def gone(event: Event) -> Pod | None:
    """The pod as it was on a node, if it no longer is as it was."""
    before = event.before
    if not isinstance(before, Pod) or not place_of(before) or _counts_alike(event):
        return None
    return before


def come(event: Event) -> Pod | None:
    """The pod as it is on a node, if it was not so before."""
    after = event.after
    if not isinstance(after, Pod) or not place_of(after) or _counts_alike(event):
        return None
    return after


def _counts_alike(event: Event) -> bool:
    """Whether a pod that changed counts where and as it did."""
    before, after = event.before, event.after
    return (
        isinstance(before, Pod)
        and isinstance(after, Pod)
        and place_of(before) == place_of(after)
        and before.metadata.labels == after.metadata.labels
        and before.is_terminating == after.is_terminating
        and before.spec == after.spec
    )
