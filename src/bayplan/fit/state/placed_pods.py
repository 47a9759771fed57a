"""Counting pods on nodes: one more, one less, in each part of the state.

A pod is counted on a node while both are known; its requests, labels, ports, terms and volumes go
to the part that keeps them. When something changes that counts rest on, the pods concerned are
taken out, the change is made, and they are put back: no part needs to know more than "one more" and
"one less".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import numpy as np

from bayplan.fit.profile import CacheLimits, VolumeRules
from bayplan.fit.signatures.reads import PluginReads
from bayplan.fit.signatures.signature import PodSignature, SignatureCache
from bayplan.fit.signatures.terms import Namespaces
from bayplan.fit.state.attachments import AttachedVolumes, CSINodes
from bayplan.fit.state.columns import BoolArray, IntArray, NodeSets, SlotChanges, Slots
from bayplan.fit.state.node_usage import (
    DeviceObjects,
    HostPorts,
    ImageHolders,
    MountedDisks,
    disks_of,
)
from bayplan.fit.state.pod_counts import PodCounts
from bayplan.fit.state.pods import NO_SLOT, Nominations, PodRecord, Pods
from bayplan.fit.state.resources import ResourceColumns
from bayplan.fit.state.topology import CountedTerm, TermIndex, Topology
from bayplan.fit.state.workloads import WorkloadSelectors
from bayplan.fit.volumes.limits import limit_of
from bayplan.fit.volumes.objects import StorageObjects, claims_of, inline_volumes, names_volumes
from bayplan.kube.nodes import Node
from bayplan.kube.pods import Pod
from bayplan.kube.storage import CSINode

KeptPod = tuple[PodRecord, Pod]
"""A record, and the pod's object then: one that counts alike takes its place on the record."""


class PlacedPods:
    """The parts of a cluster's state, and the pods that are counted in them."""

    def __init__(
        self, rules: VolumeRules, limits: CacheLimits, reads: PluginReads, *, knows_devices: bool
    ) -> None:
        self.rules = rules
        self.limits = limits
        self.slots = Slots()
        capacity = self.slots.capacity
        self.nodes: list[Node | None] = [None] * capacity
        self.csi = CSINodes()
        self.node_changes = SlotChanges(limits.changes)
        """Slots whose node (or CSINode) changed."""
        self.usage_changes = SlotChanges(limits.changes)
        """Slots whose pods or attachments changed."""
        self.alive: BoolArray = np.zeros(capacity, dtype=np.bool_)
        self.ties: IntArray = np.zeros(capacity, dtype=np.int64)
        self.resources = ResourceColumns(capacity, self.nodes, limits)
        self.ports = HostPorts()
        self.disks = MountedDisks()
        self.images = ImageHolders()
        self.attached_volumes = AttachedVolumes(capacity, self._limit, self.rules)
        self.topologies: dict[str, Topology] = {}
        self.node_sets = NodeSets(self.nodes, self.node_changes, limits)
        self.namespaces = Namespaces()
        self.pod_counts = PodCounts(self.namespaces, limits)
        self.signatures = SignatureCache(limits, reads)
        self.terms = TermIndex(self.namespaces, self.signatures.reads, limits)
        self.storage = StorageObjects()
        self.devices = DeviceObjects(are_known=knows_devices)
        self.workloads = WorkloadSelectors(self.signatures.reads)
        self.pods = Pods()
        self.nominations = Nominations()
        self._counted_terms: dict[PodSignature, tuple[CountedTerm, ...]] = {}

    @property
    def csinodes(self) -> dict[str, CSINode]:
        """CSINodes by the name of their node; to be read, not written."""
        return self.csi.by_name

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

    def node_named(self, name: str) -> Node | None:
        """A node by its name."""
        slot = self.slots.by_name.get(name)
        return None if slot is None else self.nodes[slot]

    def csinode_at(self, slot: int) -> CSINode | None:
        """The CSINode of a slot's node."""
        return self.csinodes.get(self.slots.names[slot])

    def add_pod(self, pod: Pod, key: str, node: str, signature: PodSignature) -> None:
        """A pod of this key and signature comes, on a node or (empty) on none."""
        self._add(self._record(pod, key, node, signature))

    def put_pod(self, pod: Pod, key: str, node: str, signature: PodSignature) -> PodRecord:
        """A pod comes or changes, and is now on a node or (empty) on none; if nothing changed that
        is counted, only the object is replaced.
        """
        record = self._record(pod, key, node, signature)
        before = self.pods.by_key.get(key)
        if before is not None:
            if node and _same_to_counting(before, record):
                before.pod = pod
                before.preemption_info = None
                return before
            self.remove_pod(key)
        self._add(record)
        return record

    def keep_pod(self, key: str) -> KeptPod | None:
        """What it takes to bring a pod back as it now is; None if it is not there."""
        record = self.pods.by_key.get(key)
        return None if record is None else (record, record.pod)

    def restore_pod(self, kept: KeptPod) -> None:
        """A pod is again what it was on record; nothing is read of its object."""
        record, pod = kept
        record.pod = pod
        record.preemption_info = None
        there = self.pods.by_key.get(record.key)
        if there is record:
            return
        if there is not None:
            self.remove_pod(record.key)
        record.volumes = self.storage.identities(record.claims, record.inline)
        self._add(record)

    def _record(self, pod: Pod, key: str, node: str, signature: PodSignature) -> PodRecord:
        """What is to be known of a pod, without a trace of it yet."""
        record = PodRecord(pod, key, signature, self.signatures.labels_of(pod), node)
        if pod.spec.volumes:
            record.claims = claims_of(pod)
            if names_volumes(pod):
                record.inline = inline_volumes(pod)
                record.disks = disks_of(pod)
            record.volumes = self.storage.identities(record.claims, record.inline)
        return record

    def _add(self, record: PodRecord) -> None:
        self.pods.by_key[record.key] = record
        for claim in record.claims:
            self.pods.by_claim.add(claim, record.key)
        if record.node:
            self.pods.add_to_node(record.key, record)
            self._count(record, 1)
        else:
            self.nominations.add(record)

    def remove_pod(self, key: str) -> PodRecord:
        """A pod goes."""
        record = self.pods.by_key.pop(key)
        self.nominations.discard(record)
        if record.node:
            self._count(record, -1)
            self.pods.remove_from_node(key, record)
        for claim in record.claims:
            self.pods.by_claim.discard(claim, key)
        return record

    def move_pod(self, record: PodRecord, node: str) -> None:
        """A pod is now on another node, or (empty) on none."""
        key = record.key
        self.nominations.discard(record)
        if record.node:
            self._count(record, -1)
            self.pods.remove_from_node(key, record)
        record.node = node
        if node:
            self.pods.add_to_node(key, record)
            self._count(record, 1)
        else:
            self.nominations.add(record)

    def nominate(self, key: str, node: str | None) -> None:
        """Nominate a known pod for a node (empty: for none), whatever its status; None ends
        that.
        """
        if node is None:
            self.nominations.by_scheduler.pop(key, None)
        else:
            self.nominations.by_scheduler[key] = node
        record = self.pods.by_key.get(key)
        if record is not None:
            self.nominations.discard(record)
            self.nominations.add(record)

    @contextmanager
    def counted(self, records: Iterable[PodRecord], node: str) -> Iterator[None]:
        """Count pods that have no node on this one, for as long as this lasts."""
        counted: list[PodRecord] = []
        try:
            for record in records:
                record.node = node
                self._count(record, 1)
                counted.append(record)
            yield
        finally:
            for record in counted:
                self._count(record, -1)
                record.node = ""

    def counted_terms(self, signature: PodSignature) -> tuple[CountedTerm, ...]:
        """Where a signature's own terms are counted."""
        found = self._counted_terms.get(signature)
        if found is None:
            found = tuple(
                self.terms.counted(owned, self.topology(owned.topology_key))
                for owned in signature.terms.owned
            )
            self._counted_terms[signature] = found
        return found

    def _count(self, record: PodRecord, sign: int) -> None:
        """Count a pod on its node (+1), if that is known, or stop counting it (-1)."""
        if sign > 0:
            record.slot = self.slots.by_name.get(record.node, NO_SLOT)
        slot = record.slot
        if slot == NO_SLOT:
            return
        signature = record.signature
        self.resources.take(slot, signature, sign)
        if sign > 0:
            self.pod_counts.add(record, slot)
        else:
            self.pod_counts.remove(record, slot)
            record.slot = NO_SLOT
        if signature.ports:
            self.ports.take(slot, signature.ports, sign)
        if signature.terms.owned:
            for counted in self.counted_terms(signature):
                counted.counts.add(slot, sign)
        if record.volumes or record.disks:
            self._count_volumes(record, slot, sign)
        self.usage_changes.note(slot)

    def _count_volumes(self, record: PodRecord, slot: int, sign: int) -> None:
        self.disks.take(slot, record.disks, sign)
        has_csinode = self.csinode_at(slot) is not None
        for volume in record.volumes:
            self.attached_volumes.use(slot, volume.on_node(has_csinode=has_csinode), sign)

    def count_all(self, records: Iterable[PodRecord]) -> None:
        """Count these pods."""
        for record in records:
            self._count(record, 1)

    def uncount_all(self, records: list[PodRecord]) -> list[PodRecord]:
        """Stop counting these pods; returns them."""
        for record in records:
            self._count(record, -1)
        return records

    def records_on(self, node: str) -> list[PodRecord]:
        """The pods on a node, known or not."""
        return list(self.pods.by_node.get(node, {}).values())

    def recount_claims(self, claims: Iterable[str]) -> list[PodRecord]:
        """Stop counting the pods that use these claims, until `count_again`."""
        keys = sorted({key for claim in claims for key in self.pods.by_claim.of(claim)})
        return self.uncount_all([self.pods.by_key[key] for key in keys])

    def count_again(self, records: Iterable[PodRecord]) -> None:
        """Count pods whose claims may now mean other volumes."""
        for record in records:
            record.volumes = self.storage.identities(record.claims, record.inline)
            if record.node:
                self._count(record, 1)

    def _limit(self, driver: str, slot: int, rules: VolumeRules) -> int:
        node = self.nodes[slot]
        if node is None:
            return 0
        return limit_of(driver, node, self.csinode_at(slot), rules).as_column


def _same_to_counting(before: PodRecord, after: PodRecord) -> bool:
    """Whether two records of a pod are counted the same; a pending one may be nominated anew."""
    return (
        before.signature is after.signature
        and before.node == after.node
        and before.terminating == after.terminating
        and (before.labels is after.labels or before.labels == after.labels)
        and before.claims == after.claims
        and before.volumes == after.volumes
        and before.disks == after.disks
    )
