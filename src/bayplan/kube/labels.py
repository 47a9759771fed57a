"""Well-known labels of nodes and volumes, and their deprecated names."""

from __future__ import annotations

from collections.abc import Mapping

HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"
BETA_ZONE = "failure-domain.beta.kubernetes.io/zone"
BETA_REGION = "failure-domain.beta.kubernetes.io/region"
INSTANCE_TYPE = "node.kubernetes.io/instance-type"
BETA_INSTANCE_TYPE = "beta.kubernetes.io/instance-type"


def instance_type(labels: Mapping[str, str]) -> str:
    """Return the instance type of a node; empty if its labels have none."""
    return labels.get(INSTANCE_TYPE) or labels.get(BETA_INSTANCE_TYPE, "")
