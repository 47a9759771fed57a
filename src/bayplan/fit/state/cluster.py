"""The state that predicates read: nodes in slots, and everything counted on them.

A pod is counted on a node while both are known; its volumes, ports, labels and terms go to the part
that keeps them. When something changes that a node's counts rest on (its labels, its CSINode, a
claim of one of its pods), the pods concerned are taken out, the change is made, and they are put
back: each part then needs only "one more" and "one less".
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from hashlib import blake2b

import numpy as np

from bayplan.fit.profile import Profile
from bayplan.fit.shape import Shape, Shapes
from bayplan.fit.state.attachments import Attachments
from bayplan.fit.state.census import Census
from bayplan.fit.state.changes import ChangeLog
from bayplan.fit.state.columns import BoolArray, IntArray, Slots, grown
from bayplan.fit.state.disks import Disks, disks_of
from bayplan.fit.state.images import NodeImages
from bayplan.fit.state.matching import Namespaces
from bayplan.fit.state.nodesets import NodeSets
from bayplan.fit.state.pods import NO_SLOT, PodRecord, Pods
from bayplan.fit.state.ports import HostPorts
from bayplan.fit.state.resources import Resources
from bayplan.fit.state.terms import StandingTerm, TermBook
from bayplan.fit.state.topology import Topology
from bayplan.fit.state.workloads import Workloads
from bayplan.fit.volumes.identity import VolumeId
from bayplan.fit.volumes.limits import limit_of
from bayplan.fit.volumes.objects import StorageObjects, claim_name
from bayplan.kube.nodes import Node
from bayplan.kube.pods import Pod
from bayplan.kube.storage import CSIDriver, CSINode, PersistentVolume, VolumeAttachment

TIE_BITS = 48
"""Bits of a node's name's hash that decide between nodes of one score."""


class Cluster:
    """Nodes, pods and storage as columns and indexes."""

    def __init__(self, profile: Profile) -> None:
        self.profile = profile
        self.slots = Slots()
        capacity = self.slots.capacity
        self.nodes: list[Node | None] = [None] * capacity
        self.csinodes: dict[str, CSINode] = {}
        self.registered_drivers: Counter[str] = Counter()
        """On how many nodes each CSI driver has registered."""
        self.drivers_version = 0
        """Moves whenever more or less is known of which CSI drivers there are."""
        self.node_changes = ChangeLog()
        """Slots whose node (or CSINode) changed."""
        self.usage_changes = ChangeLog()
        """Slots whose pods or attachments changed."""
        self.alive: BoolArray = np.zeros(capacity, dtype=np.bool_)
        self.ties: IntArray = np.zeros(capacity, dtype=np.int64)
        self.resources = Resources(capacity, self.nodes)
        self.ports = HostPorts()
        self.disks = Disks()
        self.images = NodeImages()
        self.attachments = Attachments(capacity, self._limit)
        self.topologies: dict[str, Topology] = {}
        self.node_sets = NodeSets(self.nodes, self.node_changes)
        self.namespaces = Namespaces()
        self.census = Census(self.namespaces)
        self.terms = TermBook(self.namespaces)
        self.storage = StorageObjects()
        self.volume_attachments: dict[str, VolumeAttachment] = {}
        self._attachments_of_node: dict[str, set[str]] = defaultdict(set)
        self._attachments_of_volume: dict[str, set[str]] = defaultdict(set)
        self.shapes = Shapes()
        self.workloads = Workloads(self.shapes)
        self.pods = Pods()
        self._standing: dict[Shape, tuple[StandingTerm, ...]] = {}
        self.slots.on_growth(self._grow)

    @property
    def rules_version(self) -> int:
        """Moves whenever nodes, namespaces or the terms of running pods change."""
        return self.node_changes.end + self.terms.generation + self.namespaces.version

    # -- nodes ---------------------------------------------------------------------------------

    def topology(self, key: str) -> Topology:
        """The domains of a label key."""
        found = self.topologies.get(key)
        if found is None:
            found = Topology(key, self.slots.capacity)
            self.topologies[key] = found
            for slot in self.slots.by_name.values():
                found.join(slot, self.node_at(slot).metadata.labels)
        return found

    def node_at(self, slot: int) -> Node:
        """The node of a slot that is taken."""
        node = self.nodes[slot]
        if node is None:
            raise LookupError(f"slot {slot} has no node")
        return node

    def csinode_at(self, slot: int) -> CSINode | None:
        """The CSINode of a slot's node."""
        return self.csinodes.get(self.slots.names[slot])

    def add_node(self, node: Node) -> None:
        """A node that was not there comes, and the pods that were waiting for it count."""
        slot = self.slots.take(node.name)
        self.ties[slot] = _tie_break(node.name)
        self._occupy(slot, node)
        self._count_all(self._pods_on(node.name))

    def replace_node(self, node: Node) -> None:
        """A node changes; if nothing that matters did, only the object is replaced."""
        slot = self.slots.by_name[node.name]
        if _same_to_scheduling(self.node_at(slot), node):
            self.nodes[slot] = node
            return
        records = self._uncount_all(self._pods_on(node.name))
        self._vacate(slot)
        self._occupy(slot, node)
        self._count_all(records)

    def remove_node(self, name: str) -> None:
        """A node goes; its pods stay known but count nowhere."""
        slot = self.slots.by_name[name]
        self._uncount_all(self._pods_on(name))
        self._vacate(slot)
        self.slots.release(name)

    def set_csinode(self, name: str, csinode: CSINode | None) -> None:
        """A node's CSINode comes, changes or goes."""
        records = self._uncount_all(self._pods_on(name))
        before = self.csinodes.pop(name, None)
        self._register(_drivers(before), -1)
        self._register(_drivers(csinode), 1)
        if csinode is not None:
            self.csinodes[name] = csinode
        slot = self.slots.by_name.get(name)
        if slot is not None:
            self.attachments.set_node(slot)
            self.node_changes.note(slot)
        self._count_all(records)

    def _register(self, drivers: list[str], sign: int) -> None:
        for driver in drivers:
            before = self.registered_drivers[driver]
            self.registered_drivers[driver] = before + sign
            if before == 0 or before + sign == 0:
                self.drivers_version += 1

    def _occupy(self, slot: int, node: Node) -> None:
        self.nodes[slot] = node
        self.alive[slot] = True
        for topology in self.topologies.values():
            topology.join(slot, node.metadata.labels)
        self.resources.set_node(slot, node)
        self.images.set_node(slot, node, present=True)
        self.attachments.set_node(slot)
        self.node_changes.note(slot)
        self.census.joined(slot, 1)
        for attachment in self.attachments_on(node.name):
            self._attach(attachment, 1)

    def _vacate(self, slot: int) -> None:
        node = self.node_at(slot)
        for attachment in self.attachments_on(node.name):
            self._attach(attachment, -1)
        self.census.joined(slot, -1)
        self.images.set_node(slot, node, present=False)
        self.resources.set_node(slot, None)
        for topology in self.topologies.values():
            topology.leave(slot)
        self.alive[slot] = False
        self.nodes[slot] = None
        self.node_changes.note(slot)

    def _limit(self, driver: str, slot: int) -> int:
        node = self.nodes[slot]
        if node is None:
            return 0
        return limit_of(driver, node, self.csinode_at(slot), self.profile).as_column

    def _grow(self, capacity: int) -> None:
        self.nodes.extend([None] * (capacity - len(self.nodes)))
        self.alive = grown(self.alive, capacity)
        self.ties = grown(self.ties, capacity)
        self.resources.grow(capacity)
        self.attachments.grow(capacity)
        self.census.grow(capacity)
        for topology in self.topologies.values():
            topology.grow(capacity)

    # -- pods ----------------------------------------------------------------------------------

    def add_pod(self, pod: Pod, node: str) -> PodRecord:
        """A pod comes, on a node or (empty) on none."""
        record = PodRecord(pod, self.shapes.of(pod), node)
        self.pods.by_key[pod.key] = record
        self._learn_volumes(record)
        if node:
            self.pods.settle(pod.key, record)
            self._count(record, 1)
        return record

    def remove_pod(self, key: str) -> PodRecord:
        """A pod goes."""
        record = self.pods.by_key.pop(key)
        if record.node:
            self._count(record, -1)
            self.pods.unsettle(key, record)
        self._forget_claims(record)
        return record

    def move_pod(self, record: PodRecord, node: str) -> None:
        """A pod is now on another node, or (empty) on none."""
        key = record.pod.key
        if record.node:
            self._count(record, -1)
            self.pods.unsettle(key, record)
        record.node = node
        if node:
            self.pods.settle(key, record)
            self._count(record, 1)

    def standing_terms(self, shape: Shape) -> tuple[StandingTerm, ...]:
        """Where a shape's own terms are counted."""
        found = self._standing.get(shape)
        if found is None:
            for owned in shape.terms.owned:
                self.shapes.heed(owned.term.selector)
            found = tuple(
                self.terms.standing(owned, self.topology(owned.topology_key))
                for owned in shape.terms.owned
            )
            self._standing[shape] = found
        return found

    def _count(self, record: PodRecord, sign: int) -> None:
        """Count a pod on its node (+1), if that is known, or stop counting it (-1)."""
        if sign > 0:
            record.slot = self.slots.by_name.get(record.node, NO_SLOT)
        slot = record.slot
        if slot == NO_SLOT:
            return
        shape = record.shape
        self.resources.take(slot, shape, sign)
        if sign > 0:
            self.census.add(record.class_key, record.pod.metadata.labels, slot)
        else:
            self.census.remove(record.class_key, slot)
            record.slot = NO_SLOT
        if shape.ports:
            self.ports.take(slot, shape.ports, sign)
        if shape.terms.owned:
            for standing in self.standing_terms(shape):
                standing.counts.add(slot, sign)
        if record.volumes or record.disks:
            self._count_volumes(record, slot, sign)
        self.usage_changes.note(slot)

    def _count_volumes(self, record: PodRecord, slot: int, sign: int) -> None:
        self.disks.take(slot, record.disks, sign)
        has_csinode = self.csinode_at(slot) is not None
        for volume in record.volumes:
            self.attachments.use(slot, volume.on_node(has_csinode=has_csinode), sign)

    def _count_all(self, records: Iterable[PodRecord]) -> None:
        for record in records:
            self._count(record, 1)

    def _uncount_all(self, records: list[PodRecord]) -> list[PodRecord]:
        for record in records:
            self._count(record, -1)
        return records

    def _pods_on(self, node: str) -> list[PodRecord]:
        return list(self.pods.by_node.get(node, {}).values())

    # -- storage -------------------------------------------------------------------------------

    def recount_claims(self, claims: Iterable[str]) -> list[PodRecord]:
        """Stop counting the pods that use these claims, until `count_again`."""
        keys = sorted({key for claim in claims for key in self.pods.by_claim.get(claim, ())})
        return self._uncount_all([self.pods.by_key[key] for key in keys])

    def count_again(self, records: Iterable[PodRecord]) -> None:
        """Count pods whose claims may now mean other volumes."""
        for record in records:
            record.volumes = self.storage.identities(record.pod)
            if record.node:
                self._count(record, 1)

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
        found = [
            self.volume_attachments[name]
            for name in sorted(self._attachments_of_volume.get(volume, ()))
        ]
        for attachment in found:
            self._attach(attachment, -1)
        return found

    def put_driver(self, driver: CSIDriver) -> None:
        """A CSI driver is described, or described anew."""
        self.storage.drivers[driver.name] = driver
        self.drivers_version += 1

    def remove_driver(self, name: str) -> None:
        """A CSI driver is no longer described."""
        del self.storage.drivers[name]
        self.drivers_version += 1

    def put_attachment(self, attachment: VolumeAttachment) -> None:
        """A VolumeAttachment comes or changes."""
        self.remove_attachment(attachment.name)
        self.volume_attachments[attachment.name] = attachment
        self._attachments_of_node[attachment.spec.node_name].add(attachment.name)
        self._attachments_of_volume[_volume_name(attachment)].add(attachment.name)
        self._attach(attachment, 1)

    def remove_attachment(self, name: str) -> None:
        """A VolumeAttachment goes."""
        attachment = self.volume_attachments.pop(name, None)
        if attachment is not None:
            self._attach(attachment, -1)
            self._attachments_of_node[attachment.spec.node_name].discard(name)
            self._attachments_of_volume[_volume_name(attachment)].discard(name)

    def attachments_on(self, node: str) -> list[VolumeAttachment]:
        """The VolumeAttachments of a node."""
        names = self._attachments_of_node.get(node, ())
        return [self.volume_attachments[name] for name in sorted(names)]

    def _attach(self, attachment: VolumeAttachment, sign: int) -> None:
        slot = self.slots.by_name.get(attachment.spec.node_name)
        volume = self.attached_volume(attachment)
        if slot is not None and volume is not None and self.alive[slot]:
            self.attachments.attach(slot, volume, sign)
            self.usage_changes.note(slot)

    def attached_volume(self, attachment: VolumeAttachment) -> VolumeId | None:
        """What a VolumeAttachment counts as; None if it counts as nothing."""
        pv = self.storage.volumes.get(_volume_name(attachment))
        if pv is None or pv.spec.csi is None or not attachment.spec.attacher:
            return None
        return VolumeId(attachment.spec.attacher, pv.spec.csi.volume_handle)

    def _learn_volumes(self, record: PodRecord) -> None:
        pod = record.pod
        if not pod.spec.volumes:
            return
        record.volumes = self.storage.identities(pod)
        record.disks = disks_of(pod)
        for volume in pod.spec.volumes:
            name = claim_name(pod, volume)
            if name:
                self.pods.by_claim[f"{pod.metadata.namespace}/{name}"].add(pod.key)

    def _forget_claims(self, record: PodRecord) -> None:
        pod = record.pod
        for volume in pod.spec.volumes:
            name = claim_name(pod, volume)
            if name:
                self.pods.by_claim[f"{pod.metadata.namespace}/{name}"].discard(pod.key)


def _volume_name(attachment: VolumeAttachment) -> str:
    return attachment.spec.source.persistent_volume_name or ""


def _drivers(csinode: CSINode | None) -> list[str]:
    return [driver.name for driver in csinode.spec.drivers] if csinode else []


def _same_to_scheduling(before: Node, after: Node) -> bool:
    return (
        before.metadata.labels == after.metadata.labels
        and before.spec == after.spec
        and before.status.allocatable == after.status.allocatable
        and before.status.images == after.status.images
    )


def _tie_break(name: str) -> int:
    digest = blake2b(name.encode(), digest_size=TIE_BITS // 8).digest()
    return int.from_bytes(digest, "big")
