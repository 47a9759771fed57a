"""The validated settings of the scheduler."""

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
    """A scheduler name with its filters and scores."""

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
    """The initial and maximum backoff of refused pods, in seconds."""

    initial: float = 1.0
    most: float = 10.0


@dataclass(frozen=True, slots=True)
class QueueSettings:
    """The settings of queues."""

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
        """Return the profile for pods of this scheduler name."""
        return next((one for one in self.profiles if one.name == scheduler_name), None)
