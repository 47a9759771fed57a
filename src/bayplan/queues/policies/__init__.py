"""The queue policies, by name. A new one is a file beside these, and its name and object here."""

from __future__ import annotations

from typing import Literal

from bayplan.queues.policies.capacity import Capacity
from bayplan.queues.policies.policy import Claim, QueuePolicy
from bayplan.queues.policies.proportion import Proportion

QueuePolicyName = Literal["capacity", "proportion"]
"""How what a queue deserves is reckoned: as it is written, or by weight."""
POLICIES: dict[QueuePolicyName, QueuePolicy] = {
    "capacity": Capacity(),
    "proportion": Proportion(),
}
VOLCANO_POLICIES: dict[QueuePolicyName, QueuePolicy] = {
    **POLICIES,
    "proportion": Proportion(caps_at_deserved=True),
}
"""The same with Volcano's habit that by weight a queue may have no more than it deserves."""

__all__ = ["POLICIES", "VOLCANO_POLICIES", "Claim", "QueuePolicy", "QueuePolicyName"]
