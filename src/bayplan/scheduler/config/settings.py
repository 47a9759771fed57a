"""What came of the configuration: values that the scheduler goes by, all sound."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from bayplan.client.election import LeaderSettings
from bayplan.kube.pods import NodeAffinity, TopologySpreadConstraint
from bayplan.queues import QueuePolicyName

BAYPLAN = "bayplan"
DEFAULT_SCHEDULER = "default-scheduler"


@dataclass(frozen=True, slots=True)
class PluginArgs:
    """What the plugins of a profile are told."""

    strategy: str = "LeastAllocated"
    strategy_resources: tuple[tuple[str, int], ...] = (("cpu", 1), ("memory", 1))
    strategy_shape: tuple[tuple[int, int], ...] = ()
    """Points of utilization and score, for RequestedToCapacityRatio."""
    ignored_resources: frozenset[str] = frozenset()
    ignored_resource_groups: frozenset[str] = frozenset()
    balanced_resources: tuple[str, ...] = ("cpu", "memory")
    hard_pod_affinity_weight: int = 1
    ignore_preferred_terms_of_existing_pods: bool = False
    added_affinity: NodeAffinity | None = None
    default_constraints: tuple[TopologySpreadConstraint, ...] | None = None
    """Spreading of pods that have no constraints of their own; None is Kubernetes' own."""
    bind_timeout: float = 600.0
    min_candidates_percentage: int = 10
    min_candidates_absolute: int = 100


@dataclass(frozen=True, slots=True)
class SchedulerProfile:
    """One scheduler by its name: what it filters and scores by."""

    name: str
    filters: frozenset[str]
    scores: Mapping[str, int]
    """Weights of the scores that count."""
    preempts: bool = True
    args: PluginArgs = field(default_factory=PluginArgs)


@dataclass(frozen=True, slots=True)
class Backoff:
    """How long a pod that was refused rests, at first and at most, in seconds."""

    initial: float = 1.0
    most: float = 10.0


@dataclass(frozen=True, slots=True)
class QueueSettings:
    """How queues are served."""

    policy: QueuePolicyName = "capacity"
    reservation_timeout: float = 600.0
    """Seconds for which quota is held for pods that find no node; 0 is for ever."""


@dataclass(frozen=True, slots=True)
class SchedulerSettings:
    """Everything the scheduler is told."""

    profiles: tuple[SchedulerProfile, ...]
    backoff: Backoff = field(default_factory=Backoff)
    leader: LeaderSettings = field(default_factory=LeaderSettings)
    queues: QueueSettings = field(default_factory=QueueSettings)
    kubeconfig: str = ""
    qps: float | None = None
    """Requests a second; None leaves it to the client, infinite is without a bound."""
    burst: int | None = None
    warnings: tuple[str, ...] = ()
    """What was asked for and makes no difference here."""

    def profile(self, scheduler_name: str) -> SchedulerProfile | None:
        """The profile that serves pods of this scheduler's name."""
        return next((one for one in self.profiles if one.name == scheduler_name), None)
