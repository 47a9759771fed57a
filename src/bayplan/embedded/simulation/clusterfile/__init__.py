"""The cluster file: one YAML document that says what a simulated cluster is made of."""

from bayplan.embedded.simulation.clusterfile.reading import parse_cluster, read_cluster
from bayplan.embedded.simulation.clusterfile.spec import (
    ClusterSpec,
    ScheduledFault,
    StorageClassSpec,
    WorkloadSpec,
)

__all__ = [
    "ClusterSpec",
    "ScheduledFault",
    "StorageClassSpec",
    "WorkloadSpec",
    "parse_cluster",
    "read_cluster",
]
