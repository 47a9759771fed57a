"""The state that predicates read: nodes in slots, and everything counted on them.

What a node is, and what is attached to it, changes here; what pods on it use is counted in
`placing`. When something changes that a node's counts rest on (its labels, its CSINode, a claim of
one of its pods), the pods concerned are taken out, the change is made, and they are put back.
"""

from __future__ import annotations

from hashlib import blake2b

from bayplan.fit.profile import CacheLimits, VolumeRules
from bayplan.fit.signatures.reads import PluginReads
from bayplan.fit.state.attachments import VolumeAttachments, volume_name
from bayplan.fit.state.columns import grown
from bayplan.fit.state.placed_pods import PlacedPods
from bayplan.fit.state.reachable_volumes import ReachableVolumes
from bayplan.fit.volumes.identity import VolumeId
from bayplan.kube.nodes import Node
from bayplan.kube.storage import CSIDriver, CSINode, PersistentVolume, VolumeAttachment

TIE_BITS = 40
"""Bits of a node's name's hash that decide between nodes of one score; the rest of a rank's 63 is
for the score.
"""


class ClusterState(PlacedPods):
    """Nodes, pods and storage as columns and indexes."""

    def __init__(
        self,
        rules: VolumeRules,
        limits: CacheLimits,
        reads: PluginReads,
        *,
        knows_devices: bool = True,
    ) -> None:
        super().__init__(rules, limits, reads, knows_devices=knows_devices)
        self._is_same_node = reads.is_same_node
        self.volume_attachments = VolumeAttachments()
        self._reachable: dict[str, ReachableVolumes] = {}
        self.slots.on_growth(self._grow)

    @property
    def rules_version(self) -> int:
        """Moves whenever nodes, namespaces or the terms of running pods change."""
        return self.node_changes.end + self.terms.generation + self.namespaces.version

    def trim(self) -> None:
        """Forget what has been seen by all, or is used by none; cheap while there is little of
        it.
        """
        self.node_changes.trim()
        self.usage_changes.trim()
        if self.terms.prune() or len(self._counted_terms) > self.limits.signatures:
            self._counted_terms.clear()

    # -- nodes ---------------------------------------------------------------------------------

    def add_node(self, node: Node) -> None:
        """A node that was not there comes, and the pods that were waiting for it count."""
        slot = self.slots.take(node.name)
        self.ties[slot] = _tie_break(node.name)
        self._occupy(slot, node)
        self.count_all(self.records_on(node.name))

    def replace_node(self, node: Node) -> None:
        """A node changes; if nothing that matters did, only the object is replaced."""
        slot = self.slots.by_name[node.name]
        if self._is_same_node(self.node_at(slot), node):
            self.nodes[slot] = node
            return
        records = self.uncount_all(self.records_on(node.name))
        self._vacate(slot)
        self._occupy(slot, node)
        self.count_all(records)

    def remove_node(self, name: str) -> None:
        """A node goes; its pods stay known but count nowhere."""
        slot = self.slots.by_name[name]
        self.uncount_all(self.records_on(name))
        self._vacate(slot)
        self.slots.release(name)

    def set_csinode(self, name: str, csinode: CSINode | None) -> None:
        """A node's CSINode comes, changes or goes."""
        records = self.uncount_all(self.records_on(name))
        self.csi.set(name, csinode)
        slot = self.slots.by_name.get(name)
        if slot is not None:
            self.attached_volumes.set_node(slot)
            self.node_changes.note(slot)
        self.count_all(records)

    def _occupy(self, slot: int, node: Node) -> None:
        self.nodes[slot] = node
        self.alive[slot] = True
        for topology in self.topologies.values():
            topology.join(slot, node.metadata.labels)
        self.resources.set_node(slot, node)
        self.images.set_node(slot, node, present=True)
        self.attached_volumes.set_node(slot)
        self.node_changes.note(slot)
        self.pod_counts.joined(slot, 1)
        for attachment in self.attachments_on(node.name):
            self._attach(attachment, 1)

    def _vacate(self, slot: int) -> None:
        node = self.node_at(slot)
        for attachment in self.attachments_on(node.name):
            self._attach(attachment, -1)
        self.pod_counts.joined(slot, -1)
        self.images.set_node(slot, node, present=False)
        self.resources.set_node(slot, None)
        for topology in self.topologies.values():
            topology.leave(slot)
        self.alive[slot] = False
        self.nodes[slot] = None
        self.node_changes.note(slot)

    def _grow(self, capacity: int) -> None:
        self.nodes.extend([None] * (capacity - len(self.nodes)))
        self.alive = grown(self.alive, capacity)
        self.ties = grown(self.ties, capacity)
        self.resources.grow(capacity)
        self.attached_volumes.grow(capacity)
        self.pod_counts.grow(capacity)
        for topology in self.topologies.values():
            topology.grow(capacity)

    def reachable(self, class_name: str) -> ReachableVolumes:
        """Which open volumes of a class nodes can reach."""
        volumes = self.storage.open_in(class_name)
        found = self._reachable.get(class_name)
        if found is None or found.volumes is not volumes:
            if len(self._reachable) > self.limits.storage_classes:
                self._reachable.clear()
            found = self._reachable[class_name] = ReachableVolumes(self, volumes)
        return found

    # -- storage -------------------------------------------------------------------------------

    def put_volume(self, pv: PersistentVolume) -> None:
        """A persistent volume comes or changes, and with it what attachments of it mean."""
        attachments = self._unattach(pv.name)
        self.storage.put_volume(pv)
        for attachment in attachments:
            self._attach(attachment, 1)

    def remove_volume(self, name: str) -> None:
        """A persistent volume goes."""
        attachments = self._unattach(name)
        self.storage.remove_volume(name)
        for attachment in attachments:
            self._attach(attachment, 1)

    def _unattach(self, volume: str) -> list[VolumeAttachment]:
        found = self.volume_attachments.of_volume(volume)
        for attachment in found:
            self._attach(attachment, -1)
        return found

    def put_driver(self, driver: CSIDriver) -> None:
        """A CSI driver is described, or described anew."""
        self.storage.drivers[driver.name] = driver
        self.csi.version += 1

    def remove_driver(self, name: str) -> None:
        """A CSI driver is no longer described."""
        del self.storage.drivers[name]
        self.csi.version += 1

    def put_attachment(self, attachment: VolumeAttachment) -> None:
        """A VolumeAttachment comes or changes."""
        self.remove_attachment(attachment.name)
        self.volume_attachments.put(attachment)
        self._attach(attachment, 1)

    def remove_attachment(self, name: str) -> None:
        """A VolumeAttachment goes."""
        attachment = self.volume_attachments.remove(name)
        if attachment is not None:
            self._attach(attachment, -1)

    def attachments_on(self, node: str) -> list[VolumeAttachment]:
        """The VolumeAttachments of a node."""
        return self.volume_attachments.of_node(node)

    def _attach(self, attachment: VolumeAttachment, sign: int) -> None:
        slot = self.slots.by_name.get(attachment.spec.node_name)
        volume = self.attached_volume(attachment)
        if slot is not None and volume is not None and self.alive[slot]:
            self.attached_volumes.attach(slot, volume, sign)
            self.usage_changes.note(slot)

    def attached_volume(self, attachment: VolumeAttachment) -> VolumeId | None:
        """What a VolumeAttachment counts as; None if it counts as nothing."""
        pv = self.storage.volumes.get(volume_name(attachment))
        if pv is None or pv.spec.csi is None or not attachment.spec.attacher:
            return None
        return VolumeId(attachment.spec.attacher, pv.spec.csi.volume_handle)


def _tie_break(name: str) -> int:
    digest = blake2b(name.encode(), digest_size=6).digest()
    return int.from_bytes(digest[: TIE_BITS // 8], "big")
