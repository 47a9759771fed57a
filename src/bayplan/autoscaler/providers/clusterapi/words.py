"""The names that Cluster API and Cluster Autoscaler agreed on, under a group that can be chosen."""

from __future__ import annotations

from dataclasses import dataclass

GROUP = "cluster.x-k8s.io"
CAPACITY = "capacity.cluster-autoscaler.kubernetes.io/"
OLD_DELETE_MARK = "cluster.k8s.io/delete-machine"
"""What controllers before v1alpha3 look for."""
REVISION = "machinedeployment.clusters.x-k8s.io/revision"
"""Annotation of a MachineSet: which revision of its MachineDeployment it is."""
GPU_LABEL = "cluster-api/accelerator"

MANAGED = ("node-role.kubernetes.io",)
"""What a label of a machine begins with that Cluster API hands on to its node, and nothing more."""
MANAGED_DOMAINS = ("node-restriction.kubernetes.io", "node.cluster.x-k8s.io")
"""The same for domains, and all below them."""


@dataclass(frozen=True, slots=True)
class Words:
    """Annotations and labels of one API group."""

    group: str = GROUP

    @property
    def min_size(self) -> str:
        """Annotation of a group: its least size."""
        return f"{self.group}/cluster-api-autoscaler-node-group-min-size"

    @property
    def max_size(self) -> str:
        """Annotation of a group: its greatest size."""
        return f"{self.group}/cluster-api-autoscaler-node-group-max-size"

    @property
    def options(self) -> str:
        """What annotations of a group begin with that say how it wants to be scaled."""
        return f"{self.group}/autoscaling-options-"

    @property
    def delete_mark(self) -> str:
        """Annotation of a machine that is to go first."""
        return f"{self.group}/delete-machine"

    @property
    def paused(self) -> str:
        """Annotation of whatever is not to be touched."""
        return f"{self.group}/paused"

    @property
    def machine(self) -> str:
        """Annotation of a node: the name of its machine."""
        return f"{self.group}/machine"

    @property
    def namespace(self) -> str:
        """Annotation of a node: the namespace of its machine."""
        return f"{self.group}/cluster-namespace"

    @property
    def cluster_name(self) -> str:
        """Label of whatever belongs to a cluster."""
        return f"{self.group}/cluster-name"


def is_managed(label: str) -> bool:
    """Whether Cluster API hands a machine's label on to its node."""
    domain = label.partition("/")[0]
    below = any(domain.endswith(f".{one}") for one in MANAGED_DOMAINS)
    return below or domain in {*MANAGED, *MANAGED_DOMAINS}
