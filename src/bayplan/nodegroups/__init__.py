"""The provider protocol: node groups, their limits, sizes, instances, templates and prices.

The autoscaler calls a `Provider` and has no code for any cloud. `externalgrpc` is the same protocol
over gRPC, as Cluster Autoscaler calls providers in other processes.
"""

from bayplan.nodegroups.errors import (
    InvalidRequestError,
    NodeGroupError,
    NodeGroupNotFoundError,
    ProviderUnavailableError,
    QuotaExceededError,
    RefusedError,
    UnimplementedError,
)
from bayplan.nodegroups.provider import Provider
from bayplan.nodegroups.templates import CSI_DRIVERS, TemplateNodeInfo, limits_text, template_of
from bayplan.nodegroups.values import (
    CloudNodeGroup,
    ErrorClass,
    GroupOptions,
    GroupProblem,
    Instance,
    InstanceError,
    InstanceState,
    NodeRef,
)

__all__ = [
    "CSI_DRIVERS",
    "CloudNodeGroup",
    "ErrorClass",
    "GroupOptions",
    "GroupProblem",
    "Instance",
    "InstanceError",
    "InstanceState",
    "InvalidRequestError",
    "NodeGroupError",
    "NodeGroupNotFoundError",
    "NodeRef",
    "Provider",
    "ProviderUnavailableError",
    "QuotaExceededError",
    "RefusedError",
    "TemplateNodeInfo",
    "UnimplementedError",
    "limits_text",
    "template_of",
]
