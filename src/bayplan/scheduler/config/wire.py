"""KubeSchedulerConfiguration as it is written: kubescheduler.config.k8s.io/v1, every field.

Fields that have no meaning here are listed all the same, so that they can be told from misspelt
ones.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from bayplan.kube.meta import Int32, Int64


class Strict(msgspec.Struct, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Base: a field that nobody knows is an error."""


class Plugin(Strict):
    """A plugin that is switched on or off, and its weight among the scores."""

    name: str
    weight: Int32 | None = None


class PluginChoice(Strict):
    """What is switched on and off at one extension point; `*` stands for all defaults."""

    enabled: list[Plugin] = []
    """Switched on, in this order."""
    disabled: list[Plugin] = []
    """Switched off; `*` is all."""


class Plugins(Strict):
    """Choices by extension point; `multiPoint` is all points at once."""

    multi_point: PluginChoice = msgspec.field(default_factory=PluginChoice)
    pre_enqueue: PluginChoice = msgspec.field(default_factory=PluginChoice)
    queue_sort: PluginChoice = msgspec.field(default_factory=PluginChoice)
    pre_filter: PluginChoice = msgspec.field(default_factory=PluginChoice)
    filter: PluginChoice = msgspec.field(default_factory=PluginChoice)
    post_filter: PluginChoice = msgspec.field(default_factory=PluginChoice)
    pre_score: PluginChoice = msgspec.field(default_factory=PluginChoice)
    score: PluginChoice = msgspec.field(default_factory=PluginChoice)
    reserve: PluginChoice = msgspec.field(default_factory=PluginChoice)
    permit: PluginChoice = msgspec.field(default_factory=PluginChoice)
    pre_bind: PluginChoice = msgspec.field(default_factory=PluginChoice)
    bind: PluginChoice = msgspec.field(default_factory=PluginChoice)
    post_bind: PluginChoice = msgspec.field(default_factory=PluginChoice)
    placement_generate: PluginChoice = msgspec.field(default_factory=PluginChoice)
    placement_score: PluginChoice = msgspec.field(default_factory=PluginChoice)
    pod_group_post_filter: PluginChoice = msgspec.field(default_factory=PluginChoice)


class PluginConfig(Strict):
    """Arguments of one plugin; which fields there are depends on the plugin."""

    name: str
    args: dict[str, object] = {}


class Profile(Strict):
    """One scheduler among those that the process plays."""

    scheduler_name: str | None = None
    """Whose pods are served: default-scheduler."""
    percentage_of_nodes_to_score: Int32 | None = None
    """Makes no difference, and is told."""
    plugins: Plugins | None = None
    """Which filters and scores are on, and their weights."""
    plugin_config: list[PluginConfig] = []
    """What plugins are told."""


class LeaderElection(Strict):
    """How replicas agree on who acts."""

    leader_elect: bool | None = None
    """Whether replicas elect one who acts: true."""
    lease_duration: str = ""
    """How long others wait after the last renewal that they saw: 15s."""
    renew_deadline: str = ""
    """How long the leader tries to renew before it gives up: 10s."""
    retry_period: str = ""
    """How long everybody waits between two tries: 2s."""
    resource_lock: str = ""
    """Only leases."""
    resource_name: str = ""
    """The lease: kube-scheduler if pods of default-scheduler are served, else bayplan-scheduler."""
    resource_namespace: str = ""
    """Its namespace: kube-system."""


class ClientConnection(Strict):
    """How to talk to the API server."""

    kubeconfig: str = ""
    """The kubeconfig, unless --kubeconfig says another."""
    accept_content_types: str = ""
    """Only JSON is spoken."""
    content_type: str = ""
    """Only JSON is spoken."""
    qps: float = 0.0
    """Requests a second; negative is no bound, unset 5,000."""
    burst: Int32 = 0
    """Requests at once; unset 10,000."""


class Configuration(Strict):
    """The whole file."""

    api_version: str = ""
    kind: str = ""
    parallelism: Int32 | None = None
    """Makes no difference, and is told: a decision looks at all nodes at once."""
    leader_election: LeaderElection = msgspec.field(default_factory=LeaderElection)
    """How replicas agree on who acts."""
    client_connection: ClientConnection = msgspec.field(default_factory=ClientConnection)
    """How to reach the API server."""
    enable_profiling: bool | None = None
    """Makes no difference, and is told: there are no profiling endpoints."""
    enable_contention_profiling: bool | None = None
    """Makes no difference."""
    percentage_of_nodes_to_score: Int32 | None = None
    """Makes no difference, and is told: all nodes are looked at."""
    pod_initial_backoff_seconds: Int64 | None = None
    """How long a refused pod rests at first: 1."""
    pod_max_backoff_seconds: Int64 | None = None
    """The longest rest: 10."""
    profiles: list[Profile] = []
    """The schedulers that the process plays."""
    extenders: list[dict[str, object]] = []
    """Refused if there are any: webhooks of the scheduler are not called."""
    delay_cache_until_active: bool | None = None
    """As if true: who waits to lead keeps no copy of the cluster."""


class Args(Strict):
    """Base of plugins' arguments, which may say what they are."""

    api_version: str = ""
    kind: str = ""


class ResourceSpec(Strict):
    """A resource and its weight; 0 counts as 1."""

    name: str
    weight: Int64 = 1


class ShapePoint(Strict):
    """A point of the function from utilization (percent) to score (0 to 10)."""

    utilization: Int32
    score: Int32


class RatioParam(Strict):
    """The function's points."""

    shape: list[ShapePoint] = []


class ScoringStrategy(Strict):
    """How NodeResourcesFit scores."""

    type: str = "LeastAllocated"
    resources: list[ResourceSpec] = []
    requested_to_capacity_ratio: RatioParam | None = None


class NodeResourcesFitArgs(Args):
    """What NodeResourcesFit is told."""

    ignored_resources: list[str] = []
    ignored_resource_groups: list[str] = []
    scoring_strategy: ScoringStrategy = msgspec.field(default_factory=ScoringStrategy)


class NodeResourcesBalancedAllocationArgs(Args):
    """What NodeResourcesBalancedAllocation is told."""

    resources: list[ResourceSpec] = []


class InterPodAffinityArgs(Args):
    """What InterPodAffinity is told."""

    hard_pod_affinity_weight: Int32 = 1
    ignore_preferred_terms_of_existing_pods: bool = False


class NodeAffinityArgs(Args):
    """What NodeAffinity is told."""

    added_affinity: dict[str, object] | None = None


class DefaultConstraint(Strict):
    """A spreading constraint of pods that have none of their own."""

    max_skew: Int32
    topology_key: str
    when_unsatisfiable: Literal["DoNotSchedule", "ScheduleAnyway"]
    label_selector: dict[str, object] | None = None
    match_label_keys: list[str] = []
    min_domains: Int32 | None = None
    node_affinity_policy: Literal["Honor", "Ignore"] = "Honor"
    node_taints_policy: Literal["Honor", "Ignore"] = "Ignore"


class PodTopologySpreadArgs(Args):
    """What PodTopologySpread is told."""

    default_constraints: list[DefaultConstraint] = []
    defaulting_type: Literal["System", "List", ""] = ""


class VolumeBindingArgs(Args):
    """What VolumeBinding is told."""

    bind_timeout_seconds: Int64 = 600
    shape: list[ShapePoint] | None = None


class DefaultPreemptionArgs(Args):
    """What DefaultPreemption is told."""

    min_candidate_nodes_percentage: Int32 = 10
    min_candidate_nodes_absolute: Int32 = 100
