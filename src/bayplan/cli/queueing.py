"""Options of queues."""

from __future__ import annotations

from dataclasses import dataclass

from cyclopts import Parameter

from bayplan.base.durations import DurationError, parse_duration
from bayplan.cli.errors import BadInput
from bayplan.queues import QueuePolicyName
from bayplan.scheduler.config import QueueSettings


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class QueueOptions:
    """Queues, where the cluster has them."""

    queue_policy: QueuePolicyName = "capacity"
    """What a queue deserves: what is written in it (capacity), or a share by weight
    (proportion)."""
    reservation_timeout: str = "10m"
    """How long quota is held for pods that were let in and find no node; 0s is for ever."""

    def settings(self) -> QueueSettings:
        """What the scheduler is told."""
        try:
            timeout = parse_duration(self.reservation_timeout)
        except DurationError as error:
            raise BadInput(f"--reservation-timeout: {error}") from None
        return QueueSettings(self.queue_policy, timeout)
