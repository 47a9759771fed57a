"""What came of the configuration: values that the scheduler goes by, all sound."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from bayplan.client.election import LeaderElectionSettings
from bayplan.fit.profile import CompiledArgs
from bayplan.queues import QueuePolicyName

BAYPLAN = "bayplan"
DEFAULT_SCHEDULER = "default-scheduler"


@dataclass(frozen=True, slots=True)
class SchedulerProfile:
    """One scheduler by its name: what it filters and scores by."""

    name: str
    filters: frozenset[str]
    scores: Mapping[str, int]
    """Weights of the scores that count."""
    preempts: bool = True
    args: CompiledArgs = ()
    """The compiled arguments of its plugins, where they are not the defaults."""
    warnings: tuple[str, ...] = ()
    """What of its plugins' arguments makes no difference here."""


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
    """All settings of the scheduler."""

    profiles: tuple[SchedulerProfile, ...]
    backoff: Backoff = field(default_factory=Backoff)
    leader: LeaderElectionSettings = field(default_factory=LeaderElectionSettings)
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
