"""Skew: we hold pods back for a driver, and the autoscaler does not know that anybody does.

With the gate VolumeLimitScaling a pod waits for a node that reports its CSI driver. An autoscaler
without the gate takes a new node for usable before that, and may buy another for the same pods, or
give up on one that only needs a moment. So whoever runs the two is told: by a warning event about
the autoscaler's status, once for each time that it comes to this, and by a metric while it lasts.

The autoscaler says which gates are on in `data.featureGates` of its status ConfigMap, as a flag
would have them. No ConfigMap is no autoscaler, which is fine; one without the field is one that
does not know the gate.
"""

from __future__ import annotations

from collections.abc import Callable

from bayplan.client import Change, Informers, Selection, Untyped
from bayplan.client.resources import CONFIG_MAPS
from bayplan.kube.gates import VOLUME_LIMIT_SCALING
from bayplan.scheduler.messages import Notice

NAMESPACE = "kube-system"
NAME = "cluster-autoscaler-status"
FIELD = "featureGates"
NOTICE = Notice(
    "Warning",
    "VolumeLimitScalingSkew",
    "Scheduling",
    f"The scheduler holds pods back until nodes report their CSI drivers ({VOLUME_LIMIT_SCALING}),"
    f" and this autoscaler does not say in data.{FIELD} that it knows: it may buy nodes in vain",
)


class SkewWatch:
    """Follows what the autoscaler says of itself."""

    def __init__(
        self,
        seen: Callable[[bool], None],
        note: Callable[[Untyped, Notice], None],
        namespace: str = NAMESPACE,
    ) -> None:
        self._namespace = namespace
        self._seen = seen
        self._note = note
        self._skewed = False

    def start(self, informers: Informers) -> None:
        """Begin to follow."""
        self._seen(False)
        which = Selection(namespace=self._namespace, fields=f"metadata.name={NAME}")
        informers.of(CONFIG_MAPS, which).on_change(self.heed)

    def heed(self, change: Change[Untyped]) -> None:
        """The status came, changed or went."""
        skewed = change.type != "deleted" and not knows_the_gate(change.object)
        if skewed and not self._skewed:
            self._note(change.object, NOTICE)
        self._skewed = skewed
        self._seen(skewed)


def knows_the_gate(status: Untyped) -> bool:
    """Whether an autoscaler's status ConfigMap says that the gate is on there."""
    data = status.get("data")
    said = data.get(FIELD) if isinstance(data, dict) else None
    if not isinstance(said, str):
        return False
    gates = (part.partition("=") for part in said.split(","))
    states = {name.strip(): value.strip().lower() for name, _, value in gates}
    return states.get(VOLUME_LIMIT_SCALING) in {"true", "t", "1"}
