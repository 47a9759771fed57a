"""The volumes of a pod that is being built."""

from __future__ import annotations

from typing import Self

from bayplan.kube.meta import Quantity
from bayplan.kube.pods import Pod
from bayplan.kube.volumes import (
    AwsElasticBlockStore,
    AzureDisk,
    ClaimSpec,
    ClaimTemplate,
    ClaimVolumeSource,
    CsiVolumeSource,
    EphemeralVolumeSource,
    GcePersistentDisk,
    Volume,
)
from tests.builders.base import Builder


class PodVolumes(Builder[Pod]):
    """What a pod's builder knows of volumes."""

    def volume(self, volume: Volume) -> Self:
        """Add any volume."""
        self._built.spec.volumes = [*self._built.spec.volumes, volume]
        return self

    def claim(self, name: str, *, read_only: bool = False) -> Self:
        """Use a claim."""
        source = ClaimVolumeSource(claim_name=name, read_only=read_only)
        return self.volume(Volume(name=self._volume_name(), persistent_volume_claim=source))

    def ephemeral(self, volume: str, storage_class: str | None, size: Quantity = "1Gi") -> Self:
        """Use a generic ephemeral volume."""
        spec = ClaimSpec(storage_class_name=storage_class, access_modes=["ReadWriteOnce"])
        spec.resources.requests = {"storage": size}
        source = EphemeralVolumeSource(volume_claim_template=ClaimTemplate(spec=spec))
        return self.volume(Volume(name=volume, ephemeral=source))

    def csi_inline(self, driver: str) -> Self:
        """Use an inline volume of a CSI driver."""
        return self.volume(Volume(name=self._volume_name(), csi=CsiVolumeSource(driver=driver)))

    def ebs(self, volume_id: str, *, read_only: bool = False) -> Self:
        """Use an in-tree EBS volume."""
        source = AwsElasticBlockStore(volume_id=volume_id, read_only=read_only)
        return self.volume(Volume(name=self._volume_name(), aws_elastic_block_store=source))

    def gce_pd(self, disk: str, *, read_only: bool = False) -> Self:
        """Use an in-tree GCE disk."""
        source = GcePersistentDisk(pd_name=disk, read_only=read_only)
        return self.volume(Volume(name=self._volume_name(), gce_persistent_disk=source))

    def azure_disk(self, disk: str) -> Self:
        """Use an in-tree Azure disk."""
        source = AzureDisk(disk_name=disk, disk_uri=disk)
        return self.volume(Volume(name=self._volume_name(), azure_disk=source))

    def _volume_name(self) -> str:
        return f"v{len(self._built.spec.volumes)}"
