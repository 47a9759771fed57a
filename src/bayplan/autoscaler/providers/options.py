"""Options of the cloud provider and its node groups: Cluster Autoscaler's flags."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


class ProviderOptionError(ValueError):
    """An invalid option of the cloud provider, and why."""


@dataclass(frozen=True)
class ProviderOptions:
    """The cloud provider, and its node groups."""

    cloud_provider: str = ""
    """The cloud provider: aws, clusterapi, externalgrpc, gce, or
    simulated (that of `bayplan up`)."""
    cloud_config: Path | None = None
    """The cloud provider's configuration file, or its socket; for clusterapi, the management
    cluster's kubeconfig."""
    nodes: tuple[str, ...] = ()
    """Minimum size, maximum size and name (for gce, also the URL) of a node group, as MIN:MAX:NAME;
    may be repeated."""
    node_group_auto_discovery: tuple[str, ...] = ()
    """Node groups to discover, as asg:tag=KEY,KEY=VALUE,
    clusterapi:namespace=NAME,clusterName=NAME,LABEL=VALUE or
    mig:namePrefix=PREFIX,min=MIN,max=MAX; may be repeated."""
    clusterapi_cloud_config_authoritative: bool = False
    """Without --cloud-config, use the in-cluster configuration for the management cluster, and not
    --kubeconfig."""
    node_groups: Path | None = None
    """A file that declares templates, CSI limits and sizes of node groups."""
