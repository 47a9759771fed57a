"""Where a claim that waits for its first consumer can be served.

A claim can take an existing volume (the smallest that will do) or have one provisioned. Its class
and its driver decide where volumes can be provisioned, and how much capacity is left there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from bayplan.fit.volumes.available_volumes import (
    STORAGE,
    WantedVolume,
    could_serve,
    smallest_volume,
    wanted_volume,
)
from bayplan.fit.volumes.objects import StorageObjects, class_of_claim, class_of_volume
from bayplan.fit.volumes.topology import reach_of
from bayplan.kube import quantity
from bayplan.kube.nodes import Node
from bayplan.kube.selectors import compile_selector
from bayplan.kube.storage import (
    SELECTED_NODE,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)

WAIT_FOR_FIRST_CONSUMER: Final = "WaitForFirstConsumer"
NO_PROVISIONER = "kubernetes.io/no-provisioner"

Topologies = tuple[tuple[tuple[str, frozenset[str]], ...], ...]


@dataclass(frozen=True, slots=True)
class Provisioning:
    """What provisioning a volume for a claim requires, by value."""

    can_provision: bool
    topologies: Topologies
    capacity: tuple[str, int, int] | None = None
    """Class, size in bytes and generation of the class's capacities, if capacity is checked."""

    def allowed_on(self, node: Node) -> bool:
        """Whether the class makes volumes for this node."""
        if not self.can_provision:
            return False
        labels = node.metadata.labels
        return not self.topologies or any(
            all(labels.get(key) in values for key, values in term) for term in self.topologies
        )


@dataclass(frozen=True, slots=True)
class FirstConsumerClaim:
    """A claim that waits for its first consumer."""

    provisioning: Provisioning
    selected_node: str | None = None
    search: tuple[str, WantedVolume] | None = None
    """Class and what is wanted, where open volumes of the class could serve the claim."""
    search_by_name: tuple[str, int, int] | None = None
    """Claim and versions, of its class and its own, where volumes are reserved for this very
    claim.
    """

    @property
    def is_unassigned(self) -> bool:
        """Whether it may still take any volume, on any node."""
        return self.selected_node is None


def first_consumer_claim(
    claim: PersistentVolumeClaim, storage: StorageObjects
) -> FirstConsumerClaim:
    """Return what is required for a claim that waits for its first consumer."""
    search = by_name = None
    name = class_of_claim(claim)
    if storage.reserved_volumes.get(claim.key):
        by_name = (claim.key, *storage.versions_behind(claim, claim.key))
    elif storage.open_volumes.get(name):
        search = (name, wanted_volume(claim))
    return FirstConsumerClaim(
        provisioning=_provisioning(claim, storage),
        selected_node=claim.metadata.annotations.get(SELECTED_NODE),
        search=search,
        search_by_name=by_name,
    )


def _provisioning(claim: PersistentVolumeClaim, storage: StorageObjects) -> Provisioning:
    storage_class = storage.class_of(claim)
    if storage_class is None:
        return Provisioning(can_provision=False, topologies=())
    provisioner = storage_class.provisioner
    return Provisioning(
        can_provision=bool(provisioner) and provisioner != NO_PROVISIONER,
        topologies=_topologies(storage_class),
        capacity=_capacity_check(claim, storage_class, storage),
    )


def _topologies(storage_class: StorageClass) -> Topologies:
    return tuple(
        tuple((e.key, frozenset(e.values)) for e in term.match_label_expressions)
        for term in storage_class.allowed_topologies
    )


def _capacity_check(
    claim: PersistentVolumeClaim, storage_class: StorageClass, storage: StorageObjects
) -> tuple[str, int, int] | None:
    driver = storage.drivers.get(storage_class.provisioner)
    size = claim.spec.resources.requests.get(STORAGE)
    if size is None or driver is None or not driver.spec.storage_capacity:
        return None
    name = storage_class.name
    return name, quantity.value(size), storage.generations[name]


def has_capacity(needed: tuple[str, int, int], node: Node, storage: StorageObjects) -> bool:
    """Whether a driver reports capacity for a volume of this size on this node."""
    class_name, size, _ = needed
    return any(
        _limit(capacity) >= size and _reaches(capacity, node)
        for capacity in storage.capacities.get(class_name, {}).values()
    )


def _limit(capacity: CSIStorageCapacity) -> int:
    written = capacity.maximum_volume_size
    if written is None:
        written = capacity.capacity
    return -1 if written is None else quantity.value(written)


def _reaches(capacity: CSIStorageCapacity, node: Node) -> bool:
    selector = compile_selector(capacity.node_topology)
    return selector.matches(node.metadata.labels)


def find_volumes(
    claims: Sequence[FirstConsumerClaim], node: Node, storage: StorageObjects
) -> list[PersistentVolume | None]:
    """The volumes that claims would take on a node, each taken once; None where one has to be
    provisioned. The claims come smallest first, and that is the order in which volumes are taken.
    """
    taken: set[str] = set()
    found: list[PersistentVolume | None] = []
    for claim in claims:
        pv = _volume_for(claim, node, storage, taken) if claim.is_unassigned else None
        if pv is not None:
            taken.add(pv.name)
        found.append(pv)
    return found


def _find_volume(
    claim: PersistentVolumeClaim, node: Node, storage: StorageObjects, taken: set[str]
) -> PersistentVolume | None:
    """The volume of its class that a claim would take on a node: its own, or the smallest that
    will do.
    """
    wanted = wanted_volume(claim)
    reserved = storage.reserved_volumes.get(claim.key, {})
    for pv in sorted(reserved.values(), key=lambda one: one.name):
        if (
            pv.name not in taken
            and _is_reserved_for(pv, claim)
            and could_serve(pv, wanted.size, wanted.mode)
        ):
            return pv if reach_of(pv).includes(node, None) else None
    sites = storage.open_in(class_of_claim(claim)).sites_for(node)
    return smallest_volume(sites, wanted, taken)


def _volume_for(
    first_consumer: FirstConsumerClaim, node: Node, storage: StorageObjects, taken: set[str]
) -> PersistentVolume | None:
    """Return the volume that such a claim would take on a node."""
    if first_consumer.search_by_name:
        return _find_volume(storage.claims[first_consumer.search_by_name[0]], node, storage, taken)
    if first_consumer.search is None:
        return None
    class_name, wanted = first_consumer.search
    return smallest_volume(storage.open_in(class_name).sites_for(node), wanted, taken)


def _is_reserved_for(pv: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Whether a volume that names a claim means this one, and is of its class."""
    reference = pv.spec.claim_ref
    return (
        reference is not None
        and (not reference.uid or reference.uid == claim.metadata.uid)
        and class_of_volume(pv) == class_of_claim(claim)
    )
