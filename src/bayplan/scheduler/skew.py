"""Version skew: the scheduler waits for CSI drivers, and the autoscaler may not.

With the gate VolumeLimitScaling a pod waits for a node that reports its CSI driver. An autoscaler
without the gate takes a new node for usable before that, and may add another for the same pods, or
remove one that only needs a moment. So a warning event is recorded about the autoscaler's status,
once each time that this begins, and a metric is set while it lasts.

The autoscaler reports its gates in `data.featureGates` of its status ConfigMap, in the syntax of
the flag. No ConfigMap is no autoscaler, which is fine; one without the field is one that does not
know the gate.
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
    f" and this autoscaler does not report that gate in data.{FIELD}: it may add needless nodes",
)


class SkewWatch:
    """Follows the status of the autoscaler."""

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
        informers.of(CONFIG_MAPS, which).on_change(self.on_status_change)

    def on_status_change(self, change: Change[Untyped]) -> None:
        """Handle a change of the status."""
        skewed = change.type != "deleted" and not knows_the_gate(change.object)
        if skewed and not self._skewed:
            self._note(change.object, NOTICE)
        self._skewed = skewed
        self._seen(skewed)


def knows_the_gate(status: Untyped) -> bool:
    """Whether the gate is on by an autoscaler's status ConfigMap."""
    data = status.get("data")
    said = data.get(FIELD) if isinstance(data, dict) else None
    if not isinstance(said, str):
        return False
    gates = (part.partition("=") for part in said.split(","))
    states = {name.strip(): value.strip().lower() for name, _, value in gates}
    return states.get(VOLUME_LIMIT_SCALING) in {"true", "t", "1"}
