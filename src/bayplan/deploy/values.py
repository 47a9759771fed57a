"""The values of a deployment: what an operator can configure.

The chart's values.yaml and its schema are generated from these types, `bayplan manifests --values`
reads them, and templates refer to their fields. Fields that are passed through to Kubernetes have
Kubernetes' names.
"""

from __future__ import annotations

from importlib.metadata import version
from typing import Annotated, Literal, cast

import msgspec
from msgspec import Meta

from bayplan.deploy.value_types import (
    Address,
    AffinityValue,
    Annotations,
    Argument,
    ContainerResources,
    Expanders,
    Folder,
    Gates,
    Image,
    Interval,
    Labels,
    Name,
    NoName,
    PullSecret,
    Replicas,
    StrictStruct,
    TolerationValue,
)
from bayplan.nodegroups.clouds import CloudName

_NOT_EVICTED = {"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}
REPOSITORY = "registry.example.com/bayplan"
OUR_VERSION = version("bayplan")


def _requests(cpu: str, memory: str) -> ContainerResources:
    return ContainerResources(requests={"cpu": cpu, "memory": memory})


class DaemonValues(StrictStruct, kw_only=True):
    """Values that every daemon has."""

    enabled: bool = True
    """Whether it is deployed."""
    resources: ContainerResources = msgspec.field(default_factory=ContainerResources)
    """Resource requests and limits of its container; `requests: null` for none."""
    extra_args: list[Argument] = []
    """Additional flags of its command."""
    node_selector: Labels = {}
    """Labels of the nodes on which it may run."""
    tolerations: list[TolerationValue] = []
    """Taints that it tolerates."""
    affinity: AffinityValue = msgspec.field(default_factory=AffinityValue)
    """Node and pod affinity."""
    priority_class_name: NoName = "system-cluster-critical"
    """Its PriorityClass; empty for none."""
    pod_annotations: Annotations = {}
    """Annotations of its pods."""


class SchedulerValues(DaemonValues, kw_only=True):
    """Values of the scheduler."""

    replicas: Replicas = 2
    """Number of replicas; one of them leads."""
    resources: ContainerResources = msgspec.field(
        default_factory=lambda: _requests("250m", "256Mi")
    )
    scheduler_names: Annotated[list[Name], Meta(min_length=1)] = msgspec.field(
        default_factory=lambda: ["bayplan"]
    )
    lease: Name = "bayplan-scheduler"


class AutoscalerValues(DaemonValues, kw_only=True):
    """Values of the autoscaler."""

    replicas: Replicas = 2
    """Number of replicas; one of them leads."""
    resources: ContainerResources = msgspec.field(
        default_factory=lambda: _requests("250m", "256Mi")
    )
    pod_annotations: Annotations = msgspec.field(default_factory=lambda: dict(_NOT_EVICTED))
    cloud_provider: CloudName = "externalgrpc"
    cloud_config_secret: NoName = "bayplan-cloud"  # noqa: S105 - the name of one
    cluster_api: bool = False
    expander: Expanders = "least-waste"


class WebhookValues(DaemonValues, kw_only=True):
    """Values of the webhook."""

    replicas: Replicas = 2
    """Number of replicas; all of them serve requests."""
    resources: ContainerResources = msgspec.field(
        default_factory=lambda: _requests("100m", "128Mi")
    )
    failure_policy: Literal["Fail", "Ignore"] = "Fail"
    cert_manager: bool = False


class NodeLimitsValues(DaemonValues, kw_only=True):
    """Values of the Deployment that publishes the attach limits of all nodes."""

    enabled: bool = False
    replicas: Replicas = 2
    """Number of replicas; one of them leads."""
    resources: ContainerResources = msgspec.field(default_factory=lambda: _requests("50m", "128Mi"))
    limits: str = "# aws-ebs: {m5.large: 20}\n"


class NodeAgentValues(DaemonValues, kw_only=True):
    """Values of the agent on every node: its attach limits, its images, or both."""

    enabled: bool = False
    resources: ContainerResources = msgspec.field(default_factory=lambda: _requests("10m", "128Mi"))
    tolerations: list[TolerationValue] = msgspec.field(
        default_factory=lambda: [TolerationValue(operator="Exists")]
    )
    priority_class_name: NoName = "system-node-critical"
    limits: bool = True
    images: bool = False
    cri_socket: Folder = "/run/containerd/containerd.sock"
    image_folder: Folder = "/var/lib/containerd"
    state_folder: Folder = "/var/lib/bayplan"


class OptionalPart(StrictStruct):
    """A component that has no values but whether it is enabled."""

    enabled: bool = True
    """Whether it is deployed."""


class CrdValues(StrictStruct):
    """Values of the custom resource definitions."""

    enabled: bool = True
    """Whether they are installed."""
    keep: bool = True


class MonitoringValues(StrictStruct):
    """Values of the objects for Prometheus' operator and Grafana."""

    enabled: bool = False
    """Whether they are deployed."""
    labels: Labels = {}
    interval: Interval = "30s"
    """Scrape interval."""


class Values(StrictStruct):
    """All values."""

    image: Image = f"{REPOSITORY}:{OUR_VERSION}"
    image_pull_policy: Literal["Always", "IfNotPresent", "Never"] = "IfNotPresent"
    image_pull_secrets: list[PullSecret] = []
    feature_gates: Gates = ""
    listen_address: Address = "0.0.0.0"  # noqa: S104 - of a pod: probes and Prometheus come from outside
    log_format: Literal["json", "text"] = "json"
    crds: CrdValues = msgspec.field(default_factory=CrdValues)
    scheduler: SchedulerValues = msgspec.field(default_factory=SchedulerValues)
    autoscaler: AutoscalerValues = msgspec.field(default_factory=AutoscalerValues)
    webhook: WebhookValues = msgspec.field(default_factory=WebhookValues)
    node_limits: NodeLimitsValues = msgspec.field(default_factory=NodeLimitsValues)
    node_agent: NodeAgentValues = msgspec.field(default_factory=NodeAgentValues)
    reader: OptionalPart = msgspec.field(default_factory=OptionalPart)
    monitoring: MonitoringValues = msgspec.field(default_factory=MonitoringValues)
    network_policies: OptionalPart = msgspec.field(
        default_factory=lambda: OptionalPart(enabled=False)
    )


COMMENTS: dict[str, str] = {
    "image": "The image of every daemon, with a tag or digest.",
    "imagePullPolicy": "The imagePullPolicy of every container.",
    "imagePullSecrets": "Secrets for pulling the image, as [{name: …}].",
    "featureGates": "Feature gates of every daemon, such as VolumeLimitScaling=false.",
    "listenAddress": "Address of health and metrics endpoints; [::] in an IPv6-only cluster.",
    "logFormat": "Log format: json or text.",
    "crds": "The definitions of Queue, PodGroup and NodeGroup.",
    "crds.keep": "Keep the definitions, and so all queues, when the release is uninstalled.",
    "scheduler": "Schedules pods, beside kube-scheduler.",
    "scheduler.schedulerNames": "The schedulerNames it serves; the webhook gates pods of the same.",
    "scheduler.lease": "Its lease; kube-scheduler if it replaces kube-scheduler.",
    "autoscaler": "Scales node groups up and down, in place of Cluster Autoscaler.",
    "autoscaler.cloudProvider": "The cloud provider.",
    "autoscaler.cloudConfigSecret": "The Secret with the file cloud-config; empty for none.",
    "autoscaler.clusterApi": "Grant the role for Cluster API's objects in this cluster.",
    "autoscaler.expander": "The expanders that choose the node group, with commas.",
    "webhook": "Gates pods of queues, and refuses invalid queues.",
    "webhook.failurePolicy": "What happens to pods of queues while no webhook responds.",
    "webhook.certManager": "Use cert-manager's certificates; else the webhook makes its own.",
    "nodeLimits": "Publishes attach limits of all nodes from one Deployment.",
    "nodeLimits.limits": "Your own limits by plugin and instance type; docs/node.md.",
    "nodeAgent": "A DaemonSet: each agent manages its own node.",
    "nodeAgent.tolerations": "Tolerations of the agents; by default all taints.",
    "nodeAgent.limits": "Publish attach limits; not together with nodeLimits.",
    "nodeAgent.images": "Pull and collect images by runtime class; runs as root on the node.",
    "nodeAgent.criSocket": "The runtime's socket on the nodes.",
    "nodeAgent.imageFolder": "The runtime's image folder, to measure how full the disk is.",
    "nodeAgent.stateFolder": "The folder in which the agent records pulls.",
    "reader": "A ClusterRole for users of explain, volumes, plan, queues and check.",
    "monitoring": "ServiceMonitors, alerts and a dashboard; needs Prometheus' operator.",
    "monitoring.labels": "Labels that your Prometheus selects.",
    "networkPolicies": "NetworkPolicies that allow ingress to served ports only.",
}
"""The comments of values.yaml, by field; fields that Kubernetes names need none."""


def find_value(values: Values, path: str) -> object:
    """Return the value of a field such as `scheduler.replicas`, by its name in values.yaml."""
    found: object = values
    for step in path.split("."):
        held = cast("StrictStruct", found)
        names = {one.encode_name: one.name for one in msgspec.structs.fields(held)}
        found = getattr(held, names[step])
    return msgspec.to_builtins(found)


def merge_values(below: object, above: object) -> object:
    """Merge values over others as Helm does: maps are merged, and null removes a key."""
    if not (isinstance(below, dict) and isinstance(above, dict)):
        return above
    made = {**below, **{key: merge_values(below.get(key), one) for key, one in above.items()}}
    return {key: one for key, one in made.items() if one is not None}
