"""The queue policies, by name. A new one is a file beside these, and its name and object here."""

from __future__ import annotations

from typing import Literal

from bayplan.queues.policies.capacity import CapacityPolicy
from bayplan.queues.policies.policy import QueueDemand, QueuePolicy
from bayplan.queues.policies.proportion import ProportionPolicy

QueuePolicyName = Literal["capacity", "proportion"]
"""How what a queue deserves is reckoned: as it is written, or by weight."""
POLICIES: dict[QueuePolicyName, QueuePolicy] = {
    "capacity": CapacityPolicy(),
    "proportion": ProportionPolicy(),
}

__all__ = ["POLICIES", "QueueDemand", "QueuePolicy", "QueuePolicyName"]
