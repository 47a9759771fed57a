"""The writes of the scheduler to the API server, each guarded by the uid of its object.

This is all of it: bind a pod, patch its status, remove our gate from it, evict a victim, give a
claim its volume or its node, and undo that; create a PodGroup, and patch the status of groups and
queues. `LiveWrites` sends them, `ShownWrites` only shows them.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Protocol

from bayplan.client import Client, deletion, json_patch, merge, strategic
from bayplan.client.errors import AlreadyExistsError, NotFoundError
from bayplan.kube.pods import Pod
from bayplan.kube.storage import (
    BOUND_BY_CONTROLLER,
    SELECTED_NODE,
    PersistentVolume,
    PersistentVolumeClaim,
)
from bayplan.kube.volcano import QUEUE_SCHEDULING_GATE, PodGroup, PodGroupStatus, Queue
from bayplan.scheduler import messages


class Writes(Protocol):
    """The interface of the writes: the API server, or a dry run."""

    @property
    def is_observed(self) -> bool:
        """Whether writes come back through the watch; in a dry run they do not."""
        ...

    async def bind(self, pod: Pod, node: str) -> None:
        """Bind a pod to a node."""
        ...

    async def read(self, pod: Pod) -> Pod | None:
        """Return the pod as the server has it now; None if it is gone, or another of its name."""
        ...

    async def patch_status(self, pod: Pod, patch: dict[str, object]) -> None:
        """Change a pod's status."""
        ...

    async def ungate(self, pod: Pod) -> None:
        """Remove our gate from a pod that has no other, and is as it was read."""
        ...

    async def create_group(self, group: PodGroup) -> None:
        """Create a PodGroup, unless it exists."""
        ...

    async def patch_group_status(self, group: PodGroup, status: PodGroupStatus) -> None:
        """Change a PodGroup's status."""
        ...

    async def patch_queue_status(self, queue: Queue, status: dict[str, object]) -> None:
        """Change a Queue's status."""
        ...

    async def evict_pod(self, victim: Pod, scheduler: str, now: str) -> None:
        """Mark a pod as preempted and delete it, with the grace that it asks for."""
        ...

    async def reserve(self, volume: PersistentVolume, claim: PersistentVolumeClaim) -> str:
        """Keep a volume for a claim; returns the volume's version since then."""
        ...

    async def release(self, volume: str, claim: PersistentVolumeClaim) -> None:
        """Keep a volume for a claim no longer, if it still is."""
        ...

    async def select_node(self, claim: PersistentVolumeClaim, node: str) -> str:
        """Have a volume made for a claim where its pod goes; returns the claim's version since."""
        ...

    async def deselect_node(self, claim: PersistentVolumeClaim, node: str) -> None:
        """Have none made there, if it has not been made yet."""
        ...


class LiveWrites:
    """Writes through a client."""

    is_observed = True

    def __init__(self, client: Client) -> None:
        self._client = client

    async def bind(self, pod: Pod, node: str) -> None:
        """Bind a pod to a node."""
        await self._client.bind(pod.namespace, pod.name, node, uid=pod.metadata.uid)

    async def read(self, pod: Pod) -> Pod | None:
        """Return the pod as the server has it now; None if it is gone, or another of its name."""
        try:
            found = await self._client.get(Pod, pod.namespace, pod.name)
        except NotFoundError:
            return None
        return found if found.metadata.uid == pod.metadata.uid else None

    async def patch_status(self, pod: Pod, patch: dict[str, object]) -> None:
        """Change a pod's status."""
        change = strategic(patch)
        await self._client.patch(Pod, pod.namespace, pod.name, change=change, subresource="status")

    async def ungate(self, pod: Pod) -> None:
        """Remove our gate from a pod that has no other, and is as it was read."""
        operations = (
            {"op": "test", "path": "/metadata/uid", "value": pod.metadata.uid},
            {"op": "test", "path": "/spec/schedulingGates/0/name", "value": QUEUE_SCHEDULING_GATE},
            {"op": "remove", "path": "/spec/schedulingGates/0"},
        )
        await self._client.patch(Pod, pod.namespace, pod.name, change=json_patch(operations))

    async def create_group(self, group: PodGroup) -> None:
        """Create a PodGroup, unless it exists."""
        with suppress(AlreadyExistsError):
            await self._client.create(group)

    async def patch_group_status(self, group: PodGroup, status: PodGroupStatus) -> None:
        """Change a PodGroup's status."""
        status_fields = {name: getattr(status, name) for name in ("phase", "running", "conditions")}
        change = merge({"metadata": {"uid": group.metadata.uid}, "status": status_fields})
        await self._client.patch(PodGroup, group.namespace, group.name, change=change)

    async def patch_queue_status(self, queue: Queue, status: dict[str, object]) -> None:
        """Change a Queue's status."""
        change = merge({"metadata": {"uid": queue.metadata.uid}, "status": status})
        await self._client.patch(Queue, queue.name, change=change, subresource="status")

    async def evict_pod(self, victim: Pod, scheduler: str, now: str) -> None:
        """Mark a pod as preempted and delete it, with the grace that it asks for."""
        patch = messages.status_patch(victim, messages.victim_condition(scheduler, now))
        try:
            if patch is not None:
                await self.patch_status(victim, patch)
            options = deletion(uid=victim.metadata.uid)
            await self._client.delete(Pod, victim.namespace, victim.name, options=options)
        except NotFoundError:
            return  # it has gone by itself

    async def reserve(self, volume: PersistentVolume, claim: PersistentVolumeClaim) -> str:
        """Keep a volume for a claim; returns the volume's version since then."""
        reference = {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "namespace": claim.namespace,
            "name": claim.name,
            "uid": claim.metadata.uid,
            "resourceVersion": claim.metadata.resource_version,
        }
        meta = {**_as_read(volume), "annotations": {BOUND_BY_CONTROLLER: "yes"}}
        change = merge({"metadata": meta, "spec": {"claimRef": reference}})
        changed = await self._client.patch(PersistentVolume, volume.name, change=change)
        return changed.metadata.resource_version

    async def release(self, volume: str, claim: PersistentVolumeClaim) -> None:
        """Keep a volume for a claim no longer, if it still is."""
        found = await self._client.get(PersistentVolume, volume)
        reference = found.spec.claim_ref
        if reference is None or reference.uid != claim.metadata.uid:
            return
        now = await self._client.get(PersistentVolumeClaim, claim.namespace, claim.name)
        if now.spec.volume_name:
            return  # the two have found each other; that is not ours to undo
        meta = {**_as_read(found), "annotations": {BOUND_BY_CONTROLLER: None}}
        change = merge({"metadata": meta, "spec": {"claimRef": None}})
        await self._client.patch(PersistentVolume, volume, change=change)

    async def select_node(self, claim: PersistentVolumeClaim, node: str) -> str:
        """Have a volume made for a claim where its pod goes; returns the claim's version since."""
        return (await self._annotate(claim, node)).metadata.resource_version

    async def deselect_node(self, claim: PersistentVolumeClaim, node: str) -> None:
        """Have none made there, if it has not been made yet."""
        found = await self._client.get(PersistentVolumeClaim, claim.namespace, claim.name)
        chosen = found.metadata.annotations.get(SELECTED_NODE)
        same = found.metadata.uid == claim.metadata.uid
        if same and chosen == node and not found.spec.volume_name:
            await self._annotate(found, None)

    async def _annotate(
        self, claim: PersistentVolumeClaim, node: str | None
    ) -> PersistentVolumeClaim:
        change = merge({"metadata": {**_as_read(claim), "annotations": {SELECTED_NODE: node}}})
        key = (claim.namespace, claim.name)
        return await self._client.patch(PersistentVolumeClaim, *key, change=change)


def _as_read(obj: PersistentVolume | PersistentVolumeClaim) -> dict[str, object]:
    """Return the preconditions of a write: the uid and resource version that were read."""
    meta = obj.metadata
    return {"uid": meta.uid, "resourceVersion": meta.resource_version}
