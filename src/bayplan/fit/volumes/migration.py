"""In-tree volumes and the CSI drivers that took them over.

Each plugin that Kubernetes migrated has a CSI name, a way to write its volume's handle, and (some)
a topology label of its own. The attach-limit keys that nodes published before CSI are here as well.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from bayplan.kube.attachlimits import IN_TREE_NAMES
from bayplan.kube.labels import BETA_ZONE, ZONE
from bayplan.kube.meta import Labels
from bayplan.kube.volumes import InTreeSources

UNSPECIFIED = "UNSPECIFIED"
MULTI_ZONE_DELIMITER = "__"


class InTreeVolume(NamedTuple):
    """A volume of an in-tree plugin, as its CSI driver would know it."""

    plugin: Plugin
    handle: str


@dataclass(frozen=True, slots=True)
class Plugin:
    """An in-tree plugin that a CSI driver took over."""

    name: str
    driver: str
    handle_of: Callable[[InTreeSources, Labels], str | None]
    topology_key: str | None = None

    @property
    def limit_suffix(self) -> str | None:
        """How attach-limit keys in a node's allocatable end, if the plugin had one."""
        return IN_TREE_NAMES.get(self.driver)


def _ebs_handle(source: InTreeSources, _labels: Labels) -> str | None:
    disk = source.aws_elastic_block_store
    if disk is None:
        return None
    if not disk.volume_id.startswith("aws://"):
        return disk.volume_id
    _zone, _, path = disk.volume_id.removeprefix("aws://").partition("/")
    return path.partition("?")[0].partition("#")[0].strip("/")


def _gce_handle(source: InTreeSources, labels: Labels) -> str | None:
    disk = source.gce_persistent_disk
    if disk is None:
        return None
    zones = (labels.get(BETA_ZONE) or labels.get(ZONE) or UNSPECIFIED).split(MULTI_ZONE_DELIMITER)
    if len(zones) > 1:
        region = zones[0].rsplit("-", 1)[0]
        return f"projects/{UNSPECIFIED}/regions/{region}/disks/{disk.pd_name}"
    return f"projects/{UNSPECIFIED}/zones/{zones[0]}/disks/{disk.pd_name}"


def _azure_handle(source: InTreeSources, _labels: Labels) -> str | None:
    return source.azure_disk.disk_uri if source.azure_disk else None


def _cinder_handle(source: InTreeSources, _labels: Labels) -> str | None:
    return source.cinder.volume_id if source.cinder else None


def _portworx_handle(source: InTreeSources, _labels: Labels) -> str | None:
    return source.portworx_volume.volume_id if source.portworx_volume else None


PLUGINS = (
    Plugin(
        "kubernetes.io/aws-ebs",
        "ebs.csi.aws.com",
        _ebs_handle,
        "topology.ebs.csi.aws.com/zone",
    ),
    Plugin(
        "kubernetes.io/gce-pd",
        "pd.csi.storage.gke.io",
        _gce_handle,
        "topology.gke.io/zone",
    ),
    Plugin(
        "kubernetes.io/azure-disk",
        "disk.csi.azure.com",
        _azure_handle,
    ),
    Plugin(
        "kubernetes.io/cinder",
        "cinder.csi.openstack.org",
        _cinder_handle,
        "topology.cinder.csi.openstack.org/zone",
    ),
    Plugin("kubernetes.io/portworx-volume", "pxd.portworx.com", _portworx_handle),
)
BY_PLUGIN_NAME = {plugin.name: plugin for plugin in PLUGINS}
BY_DRIVER = {plugin.driver: plugin for plugin in PLUGINS}


def in_tree_volume(source: InTreeSources, labels: Labels) -> InTreeVolume | None:
    """The migrated plugin behind a source, if there is one; `labels` are the volume's own."""
    for plugin in PLUGINS:
        handle = plugin.handle_of(source, labels)
        if handle:
            return InTreeVolume(plugin, handle)
    return None
