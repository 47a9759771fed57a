"""What an operator can choose about a deployment.

One type says it for all: the chart's values.yaml and its schema are made from it, `bayplan
manifests --values` reads it, and every hole in the objects names a field of it. Names are those of
Kubernetes wherever a field is handed on as it is.
"""

from __future__ import annotations

from importlib.metadata import version
from typing import Annotated, Literal, cast

import msgspec
from msgspec import Meta

from bayplan.deploy.words import (
    Address,
    Affinity,
    Annotations,
    Argument,
    Expanders,
    Folder,
    Gates,
    Image,
    Interval,
    Labels,
    Name,
    NoName,
    Replicas,
    Resources,
    SecretName,
    Strict,
    Toleration,
)
from bayplan.nodegroups.clouds import CloudName

_STAYS = {"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}
REPOSITORY = "registry.example.com/bayplan"
OURS = version("bayplan")


def _requests(cpu: str, memory: str) -> Resources:
    return Resources(requests={"cpu": cpu, "memory": memory})


class Workload(Strict, kw_only=True):
    """What every daemon has."""

    enabled: bool = True
    """Whether it is there."""
    resources: Resources = msgspec.field(default_factory=Resources)
    """What its container asks for and may have; `requests: null` for nothing."""
    extra_args: list[Argument] = []
    """Further flags of its command."""
    node_selector: Labels = {}
    """Labels of the nodes where it may run."""
    tolerations: list[Toleration] = []
    """Taints that do not keep it away."""
    affinity: Affinity = msgspec.field(default_factory=Affinity)
    """Nodes and pods that it needs or likes."""
    priority_class_name: NoName = "system-cluster-critical"
    """Its PriorityClass; empty for none."""
    pod_annotations: Annotations = {}
    """Annotations of its pods."""


class Scheduler(Workload, kw_only=True):
    """Whose pods are placed."""

    replicas: Replicas = 2
    """How many run; of several, one leads."""
    resources: Resources = msgspec.field(default_factory=lambda: _requests("250m", "256Mi"))
    scheduler_names: Annotated[list[Name], Meta(min_length=1)] = msgspec.field(
        default_factory=lambda: ["bayplan"]
    )
    lease: Name = "bayplan-scheduler"


class Autoscaler(Workload, kw_only=True):
    """Which cloud is asked for nodes."""

    replicas: Replicas = 2
    """How many run; of several, one leads."""
    resources: Resources = msgspec.field(default_factory=lambda: _requests("250m", "256Mi"))
    pod_annotations: Annotations = msgspec.field(default_factory=lambda: dict(_STAYS))
    cloud_provider: CloudName = "externalgrpc"
    cloud_config_secret: NoName = "bayplan-cloud"  # noqa: S105 - the name of one
    cluster_api: bool = False
    expander: Expanders = "least-waste"


class Webhook(Workload, kw_only=True):
    """Who vouches for the webhook."""

    replicas: Replicas = 2
    """How many run; all of them answer."""
    resources: Resources = msgspec.field(default_factory=lambda: _requests("100m", "128Mi"))
    failure_policy: Literal["Fail", "Ignore"] = "Fail"
    cert_manager: bool = False


class NodeLimits(Workload, kw_only=True):
    """Attach limits for all nodes, from one place."""

    enabled: bool = False
    replicas: Replicas = 2
    """How many run; of several, one leads."""
    resources: Resources = msgspec.field(default_factory=lambda: _requests("50m", "128Mi"))
    limits: str = "# aws-ebs: {m5.large: 20}\n"


class NodeAgent(Workload, kw_only=True):
    """An agent on every node: its attach limits, its images, or both."""

    enabled: bool = False
    resources: Resources = msgspec.field(default_factory=lambda: _requests("10m", "128Mi"))
    tolerations: list[Toleration] = msgspec.field(
        default_factory=lambda: [Toleration(operator="Exists")]
    )
    priority_class_name: NoName = "system-node-critical"
    limits: bool = True
    images: bool = False
    cri_socket: Folder = "/run/containerd/containerd.sock"
    image_folder: Folder = "/var/lib/containerd"
    state_folder: Folder = "/var/lib/bayplan"


class Switch(Strict):
    """Something that is there or not."""

    enabled: bool = True
    """Whether it is there."""


class Kinds(Strict):
    """The definitions of custom kinds."""

    enabled: bool = True
    """Whether they are there."""
    keep: bool = True


class Monitoring(Strict):
    """What Prometheus' operator and Grafana are told."""

    enabled: bool = False
    """Whether they are there."""
    labels: Labels = {}
    interval: Interval = "30s"
    """How often metrics are asked for."""


class Values(Strict):
    """All that can be chosen."""

    image: Image = f"{REPOSITORY}:{OURS}"
    image_pull_policy: Literal["Always", "IfNotPresent", "Never"] = "IfNotPresent"
    image_pull_secrets: list[SecretName] = []
    feature_gates: Gates = ""
    listen_address: Address = "0.0.0.0"  # noqa: S104 - of a pod: probes and Prometheus come from outside
    log_format: Literal["json", "text"] = "json"
    crds: Kinds = msgspec.field(default_factory=Kinds)
    scheduler: Scheduler = msgspec.field(default_factory=Scheduler)
    autoscaler: Autoscaler = msgspec.field(default_factory=Autoscaler)
    webhook: Webhook = msgspec.field(default_factory=Webhook)
    node_limits: NodeLimits = msgspec.field(default_factory=NodeLimits)
    node_agent: NodeAgent = msgspec.field(default_factory=NodeAgent)
    reader: Switch = msgspec.field(default_factory=Switch)
    monitoring: Monitoring = msgspec.field(default_factory=Monitoring)
    network_policies: Switch = msgspec.field(default_factory=lambda: Switch(enabled=False))


WHY: dict[str, str] = {
    "image": "The image of every daemon; a digest is as good as a tag.",
    "imagePullPolicy": "When nodes pull it.",
    "imagePullSecrets": "Secrets for pulling it, as [{name: …}].",
    "featureGates": "Gates of every daemon, such as VolumeLimitScaling=false.",
    "listenAddress": "Where pods serve health and metrics; [::] in a cluster of IPv6 alone.",
    "logFormat": "json for programs, text for people.",
    "crds": "Queue, PodGroup and NodeGroup.",
    "crds.keep": "Whether the definitions, and so all queues, outlive an uninstalled release.",
    "scheduler": "Places pods, beside kube-scheduler.",
    "scheduler.schedulerNames": "Whose pods; the webhook gates pods of the same.",
    "scheduler.lease": "Its lease; kube-scheduler, if it takes the place of that one.",
    "autoscaler": "Buys nodes and gives them back, in place of Cluster Autoscaler.",
    "autoscaler.cloudProvider": "Which cloud.",
    "autoscaler.cloudConfigSecret": "The Secret with its file cloud-config; empty for none.",
    "autoscaler.clusterApi": "Whether it may scale Cluster API's objects in this cluster.",
    "autoscaler.expander": "How the best group is chosen.",
    "webhook": "Gates pods of queues, and refuses queues that make no sense.",
    "webhook.failurePolicy": "What happens to pods of queues while no webhook answers.",
    "webhook.certManager": "Certificates of cert-manager; without it the webhook makes its own.",
    "nodeLimits": "Publishes attach limits of all nodes from one Deployment.",
    "nodeLimits.limits": "Your own limits by plugin and instance type; docs/node.md.",
    "nodeAgent": "A DaemonSet: each agent looks after its own node.",
    "nodeAgent.tolerations": "Where it also goes; all nodes unless said otherwise.",
    "nodeAgent.limits": "Publish attach limits; not together with nodeLimits.",
    "nodeAgent.images": "Pull and collect images by runtime class; runs as root on the node.",
    "nodeAgent.criSocket": "The runtime's socket on the nodes.",
    "nodeAgent.imageFolder": "Where the runtime keeps images, to see how full the disk is.",
    "nodeAgent.stateFolder": "Where the agent remembers pulls.",
    "reader": "A ClusterRole for whoever asks explain, volumes, plan, queues and check.",
    "monitoring": "ServiceMonitors, alerts and a dashboard; needs Prometheus' operator.",
    "monitoring.labels": "Labels by which your Prometheus finds them.",
    "networkPolicies": "Let nobody in but to the ports that are served.",
}
"""What values.yaml says of a field; those that Kubernetes names need no word."""


def find(values: Values, path: str) -> object:
    """The value of a field such as `scheduler.replicas`, by its name in values.yaml."""
    found: object = values
    for step in path.split("."):
        held = cast("Strict", found)
        names = {one.encode_name: one.name for one in msgspec.structs.fields(held)}
        found = getattr(held, names[step])
    return msgspec.to_builtins(found)


def layered(below: object, above: object) -> object:
    """Values over values, as Helm lays them: maps are merged, and null takes a key away."""
    if not (isinstance(below, dict) and isinstance(above, dict)):
        return above
    made = {**below, **{key: layered(below.get(key), one) for key, one in above.items()}}
    return {key: one for key, one in made.items() if one is not None}
