"""What a cloud can be asked: node groups, their bounds, sizes, instances, templates and prices.

Whoever buys nodes asks a `Provider`, and knows of no cloud. `externalgrpc` is the same questions on
the wire, as Cluster Autoscaler asks them of providers in other processes.
"""

from bayplan.nodegroups.errors import (
    InvalidRequestError,
    NodeGroupError,
    NotFoundError,
    NotOfferedError,
    QuotaExceededError,
    RefusedError,
    UnavailableError,
)
from bayplan.nodegroups.provider import Provider
from bayplan.nodegroups.templates import CSI_DRIVERS, TemplateNodeInfo, limits_text, template_of
from bayplan.nodegroups.values import (
    ErrorClass,
    GroupOptions,
    GroupProblem,
    Instance,
    InstanceError,
    InstanceState,
    NodeGroup,
    NodeRef,
)

__all__ = [
    "CSI_DRIVERS",
    "ErrorClass",
    "GroupOptions",
    "GroupProblem",
    "Instance",
    "InstanceError",
    "InstanceState",
    "InvalidRequestError",
    "NodeGroup",
    "NodeGroupError",
    "NodeRef",
    "NotFoundError",
    "NotOfferedError",
    "Provider",
    "QuotaExceededError",
    "RefusedError",
    "TemplateNodeInfo",
    "UnavailableError",
    "limits_text",
    "template_of",
]
