"""A dry run: what would be written is shown instead, a line each, and taken as done.

So decisions build on each other as they would, but nothing comes back through the watch: a pod that
was placed stays assumed until something else is observed. Nothing at all is written, not even
events.
"""

from __future__ import annotations

from collections.abc import Callable

from bayplan.kube.pods import Pod
from bayplan.kube.storage import PersistentVolume, PersistentVolumeClaim
from bayplan.kube.volcano import PodGroup, PodGroupStatus, Queue

Show = Callable[[str, str], None]
"""Called with the key of an object, and the text of what would be done with it."""


class ShownWrites:
    """Prints the writes of a dry run instead of sending them."""

    is_observed = False

    def __init__(self, show: Show) -> None:
        self._show = show

    async def bind(self, pod: Pod, node: str) -> None:
        """Print the binding of a pod."""
        self._show(pod.key, f"would be bound to {node}")

    async def read(self, pod: Pod) -> Pod | None:
        """Return the pod as it was observed; nothing is read in a dry run."""
        return pod

    async def patch_status(self, pod: Pod, patch: dict[str, object]) -> None:
        """Print the conditions and the nominated node of a pod."""
        status = patch.get("status")
        for text in _told(status if isinstance(status, dict) else {}):
            self._show(pod.key, text)

    async def ungate(self, pod: Pod) -> None:
        """Print the removal of our gate."""
        self._show(pod.key, "would be admitted by its queue, and lose its gate")

    async def create_group(self, group: PodGroup) -> None:
        """Print the creation of a PodGroup."""
        self._show(group.key, f"would be made, in queue {group.spec.queue}")

    async def patch_group_status(self, group: PodGroup, status: PodGroupStatus) -> None:
        """Print the phase of a PodGroup."""
        self._show(group.key, f"would be {status.phase}")

    async def patch_queue_status(self, queue: Queue, status: dict[str, object]) -> None:
        """Print nothing: the status of queues is not shown."""

    async def evict_pod(self, victim: Pod, scheduler: str, now: str) -> None:  # noqa: ARG002 - as Writes has it
        """Print the preemption of a pod."""
        self._show(victim.key, f"would be preempted by {scheduler}, and deleted")

    async def reserve(self, volume: PersistentVolume, claim: PersistentVolumeClaim) -> str:
        """Print the binding of a claim to an existing volume."""
        self._show(claim.key, f"would be bound to volume {volume.name}")
        return ""

    async def release(self, volume: str, claim: PersistentVolumeClaim) -> None:
        """Do nothing: a dry run reserves nothing."""

    async def select_node(self, claim: PersistentVolumeClaim, node: str) -> str:
        """Print the provisioning of a volume for a claim."""
        self._show(claim.key, f"would have a volume made for {node}")
        return ""

    async def deselect_node(self, claim: PersistentVolumeClaim, node: str) -> None:
        """Do nothing: a dry run reserves nothing."""


def _told(status: dict[str, object]) -> list[str]:
    conditions = status.get("conditions")
    told = [str(one["message"]) for one in conditions] if isinstance(conditions, list) else []
    if "nominatedNodeName" in status:
        node = status["nominatedNodeName"]
        told.append(f"would be nominated for {node}" if node else "would lose its nomination")
    return told
