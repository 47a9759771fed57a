"""Checks of volumes, claims, storage classes and CSI objects."""

from __future__ import annotations

from bayplan.kube.storage import (
    CSINode,
    CSINodeDriver,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from bayplan.kube.validation import fields
from bayplan.kube.validation.fields import each, need, within
from bayplan.kube.volumes import ClaimSpec, Volume


def check_pod_volume(volume: Volume) -> None:
    """Check one volume of a pod."""
    claim = volume.persistent_volume_claim
    if claim is not None:
        fields.name("persistentVolumeClaim.claimName", claim.claim_name)
    if volume.ephemeral is not None:
        # The claim is named after the volume, so a volume without a name has no claim.
        fields.name("name", volume.name)
        within("ephemeral.volumeClaimTemplate.spec", _claim_spec,
               volume.ephemeral.volume_claim_template.spec)  # fmt: skip
    if volume.csi is not None:
        fields.name("csi.driver", volume.csi.driver)


def check_volume(volume: PersistentVolume) -> None:
    """Check a volume."""
    spec = volume.spec
    fields.amounts("spec.capacity", spec.capacity)
    fields.optional_name("spec.storageClassName", spec.storage_class_name)
    if spec.csi is not None:
        fields.name("spec.csi.driver", spec.csi.driver)
        need(bool(spec.csi.volume_handle), "spec.csi.volumeHandle", "", "is missing")
    if spec.node_affinity is not None and spec.node_affinity.required is not None:
        terms = spec.node_affinity.required.node_selector_terms
        each("spec.nodeAffinity.required.nodeSelectorTerms", fields.node_term, terms)


def check_claim(claim: PersistentVolumeClaim) -> None:
    """Check a claim."""
    within("spec", _claim_spec, claim.spec)


def _claim_spec(spec: ClaimSpec) -> None:
    fields.amounts("resources.requests", spec.resources.requests)
    fields.optional_name("storageClassName", spec.storage_class_name)
    fields.optional_name("volumeName", spec.volume_name)
    fields.selector("selector", spec.selector)


def check_class(storage_class: StorageClass) -> None:
    """Check a storage class."""
    fields.name("provisioner", storage_class.provisioner.replace("/", "."))
    for index, term in enumerate(storage_class.allowed_topologies):
        for at, wanted in enumerate(term.match_label_expressions):
            place = f"allowedTopologies[{index}].matchLabelExpressions[{at}].key"
            fields.label_key(place, wanted.key)


def check_csi_node(node: CSINode) -> None:
    """Check a CSINode."""
    each("spec.drivers", _driver, node.spec.drivers)
    names = [driver.name for driver in node.spec.drivers]
    for index, name in enumerate(names):
        need(name not in names[:index], f"spec.drivers[{index}].name", name, "duplicate driver")


def _driver(driver: CSINodeDriver) -> None:
    fields.name("name", driver.name)
    for index, key in enumerate(driver.topology_keys):
        fields.label_key(f"topologyKeys[{index}]", key)


def check_capacity(capacity: CSIStorageCapacity) -> None:
    """Check a driver's capacity."""
    fields.name("storageClassName", capacity.storage_class_name)
    fields.selector("nodeTopology", capacity.node_topology)
    if capacity.capacity is not None:
        fields.amount("capacity", capacity.capacity)
    if capacity.maximum_volume_size is not None:
        fields.amount("maximumVolumeSize", capacity.maximum_volume_size)


def check_attachment(attachment: VolumeAttachment) -> None:
    """Check an attachment."""
    fields.name("spec.nodeName", attachment.spec.node_name)
    fields.name("spec.attacher", attachment.spec.attacher)
    source = attachment.spec.source
    fields.optional_name("spec.source.persistentVolumeName", source.persistent_volume_name)
