"""KubeSchedulerConfiguration as it is written: kubescheduler.config.k8s.io/v1, every field.

Fields that have no meaning here are listed all the same, so that misspelt ones are
found.
"""

from __future__ import annotations

import msgspec

from bayplan.kube.meta import Int32, Int64


class Strict(msgspec.Struct, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Base: an unknown field is an error."""


class Plugin(Strict):
    """A plugin that is switched on or off, and its weight among the scores."""

    name: str
    weight: Int32 | None = None


class PluginChoice(Strict):
    """The enabled and disabled plugins of one extension point; `*` is all defaults."""

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


class KubeSchedulerProfile(Strict):
    """One profile: a scheduler name with its plugins."""

    scheduler_name: str | None = None
    """Whose pods are served: default-scheduler."""
    percentage_of_nodes_to_score: Int32 | None = None
    """Has no effect; a warning is logged."""
    plugins: Plugins | None = None
    """Which filters and scores are on, and their weights."""
    plugin_config: list[PluginConfig] = []
    """Arguments of plugins."""


class LeaderElection(Strict):
    """The settings of leader election."""

    leader_elect: bool | None = None
    """Whether replicas elect a leader: true."""
    lease_duration: str = ""
    """How long others wait after the last renewal that they saw: 15s."""
    renew_deadline: str = ""
    """How long the leader tries to renew before it gives up: 10s."""
    retry_period: str = ""
    """The time between two attempts to take or renew the lease: 2s."""
    resource_lock: str = ""
    """Only leases."""
    resource_name: str = ""
    """The lease: kube-scheduler if pods of default-scheduler are served, else bayplan-scheduler."""
    resource_namespace: str = ""
    """Its namespace: kube-system."""


class ClientConnection(Strict):
    """The settings of connections to the API server."""

    kubeconfig: str = ""
    """The kubeconfig, unless --kubeconfig names another."""
    accept_content_types: str = ""
    """Has no effect: only JSON is used."""
    content_type: str = ""
    """Has no effect: only JSON is used."""
    qps: float = 0.0
    """Requests a second; negative is no bound, unset 5,000."""
    burst: Int32 = 0
    """Requests at once; unset 10,000."""


class Configuration(Strict):
    """The whole file."""

    api_version: str = ""
    kind: str = ""
    parallelism: Int32 | None = None
    """Has no effect, a warning is logged: a decision looks at all nodes at once."""
    leader_election: LeaderElection = msgspec.field(default_factory=LeaderElection)
    """How replicas agree on who acts."""
    client_connection: ClientConnection = msgspec.field(default_factory=ClientConnection)
    """How to reach the API server."""
    enable_profiling: bool | None = None
    """Has no effect, a warning is logged: there are no profiling endpoints."""
    enable_contention_profiling: bool | None = None
    """Makes no difference."""
    percentage_of_nodes_to_score: Int32 | None = None
    """Has no effect, a warning is logged: all nodes are evaluated."""
    pod_initial_backoff_seconds: Int64 | None = None
    """How long a refused pod rests at first: 1."""
    pod_max_backoff_seconds: Int64 | None = None
    """The longest rest: 10."""
    profiles: list[KubeSchedulerProfile] = []
    """The schedulers that the process plays."""
    extenders: list[dict[str, object]] = []
    """Refused if there are any: webhooks of the scheduler are not called."""
    delay_cache_until_active: bool | None = None
    """As if true: who waits to lead keeps no copy of the cluster."""
