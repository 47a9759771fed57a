"""The cluster file: one YAML document that describes a simulated cluster."""

from bayplan.embedded.simulation.clusterfile.cluster import (
    ClusterSpec,
    cluster_of,
    parse_cluster,
    plain_cluster,
    read_cluster,
)
from bayplan.embedded.simulation.clusterfile.faults import ScheduledFault
from bayplan.embedded.simulation.clusterfile.workloads import WorkloadSpec

__all__ = [
    "ClusterSpec",
    "ScheduledFault",
    "WorkloadSpec",
    "cluster_of",
    "parse_cluster",
    "plain_cluster",
    "read_cluster",
]
