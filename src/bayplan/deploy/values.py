"""What an operator can choose about a deployment.

One type says it for all: the chart's values.yaml and its schema are made from it, `bayplan
manifests --values` reads it, and every hole in the objects names a field of it. Names are those of
Kubernetes wherever a field is handed on as it is.
"""

from __future__ import annotations

from importlib.metadata import version
from typing import Annotated, Any, Literal, cast

import msgspec
from msgspec import Meta

Count = Annotated[int, Meta(ge=0)]
Free = dict[str, Any]
"""A part of an object that is handed on as it is."""
_STAYS = {"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}
REPOSITORY = "registry.example.com/bayplan"
OURS = version("bayplan")


class Strict(msgspec.Struct, rename="camel", forbid_unknown_fields=True, omit_defaults=False):
    """What has no fields but its own."""


def _requests(cpu: str, memory: str) -> Free:
    return {"requests": {"cpu": cpu, "memory": memory}}


class Workload(Strict, kw_only=True):
    """What every daemon has."""

    enabled: bool = True
    resources: Free = {}
    extra_args: list[str] = []
    node_selector: dict[str, str] = {}
    tolerations: list[Free] = []
    pod_annotations: dict[str, str] = {}


class Scheduler(Workload, kw_only=True):
    """Whose pods are placed."""

    replicas: Count = 2
    resources: Free = msgspec.field(default_factory=lambda: _requests("250m", "256Mi"))
    scheduler_names: list[str] = msgspec.field(default_factory=lambda: ["bayplan"])
    lease: str = "bayplan-scheduler"


class Autoscaler(Workload, kw_only=True):
    """Which cloud is asked for nodes."""

    replicas: Count = 2
    resources: Free = msgspec.field(default_factory=lambda: _requests("250m", "256Mi"))
    pod_annotations: dict[str, str] = msgspec.field(default_factory=lambda: dict(_STAYS))
    cloud_provider: Literal["externalgrpc", "clusterapi", "aws"] = "externalgrpc"
    cloud_config_secret: str = "bayplan-cloud"  # noqa: S105 - the name of one
    cluster_api: bool = False
    expander: str = "least-waste"


class Webhook(Workload, kw_only=True):
    """Who vouches for the webhook."""

    replicas: Count = 2
    resources: Free = msgspec.field(default_factory=lambda: _requests("100m", "128Mi"))
    failure_policy: Literal["Fail", "Ignore"] = "Fail"
    cert_manager: bool = False


class NodeLimits(Workload, kw_only=True):
    """Attach limits for all nodes, from one place."""

    enabled: bool = False
    replicas: Count = 2
    resources: Free = msgspec.field(default_factory=lambda: _requests("50m", "128Mi"))
    limits: str = "# aws-ebs: {m5.large: 20}\n"


class NodeAgent(Workload, kw_only=True):
    """An agent on every node: its attach limits, its images, or both."""

    enabled: bool = False
    resources: Free = msgspec.field(default_factory=lambda: _requests("10m", "128Mi"))
    limits: bool = True
    images: bool = False
    cri_socket: str = "/run/containerd/containerd.sock"
    image_folder: str = "/var/lib/containerd"
    state_folder: str = "/var/lib/bayplan"


class Switch(Strict):
    """Something that is there or not."""

    enabled: bool = True


class Kinds(Strict):
    """The definitions of custom kinds."""

    enabled: bool = True
    keep: bool = True


class Monitoring(Strict):
    """What Prometheus' operator and Grafana are told."""

    enabled: bool = False
    labels: dict[str, str] = {}
    interval: str = "30s"


class Values(Strict):
    """All that can be chosen."""

    image: str = f"{REPOSITORY}:{OURS}"
    image_pull_policy: Literal["Always", "IfNotPresent", "Never"] = "IfNotPresent"
    image_pull_secrets: list[dict[str, str]] = []
    feature_gates: str = ""
    listen_address: str = "0.0.0.0"  # noqa: S104 - of a pod: probes and Prometheus come from outside
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
        held = cast("msgspec.Struct", found)
        names = {one.encode_name: one.name for one in msgspec.structs.fields(held)}
        found = getattr(held, names[step])
    return found


def layered(below: object, above: object) -> object:
    """Values over values, as Helm lays them: maps are merged, and null takes a key away."""
    if not (isinstance(below, dict) and isinstance(above, dict)):
        return above
    made = {**below, **{key: layered(below.get(key), one) for key, one in above.items()}}
    return {key: one for key, one in made.items() if one is not None}


def over_usual(said: Free) -> object:
    """What somebody says over what is usual, all in plain values."""
    return layered(msgspec.to_builtins(Values()), said)


def schema() -> Free:
    """values.yaml's JSON schema, self-contained, as Helm checks it."""
    made = msgspec.json.schema(Values)
    whole = cast("Free", _inlined(made["$defs"][Values.__name__], made["$defs"]))
    # Helm adds a field of its own.
    whole["properties"]["global"] = {"type": "object"}
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **whole}


def _inlined(node: object, definitions: Free) -> object:
    """A schema without references; what is to be said of fields is in values.yaml."""
    if isinstance(node, list):
        return [_inlined(one, definitions) for one in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        return _inlined(definitions[str(node["$ref"]).rpartition("/")[2]], definitions)
    left = {key: one for key, one in node.items() if key not in {"title", "description", "default"}}
    return {key: _inlined(one, definitions) for key, one in left.items()}
