"""Quota as Volcano counts it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from msgspec.structs import replace

from bayplan.kube.volcano import ROOT_QUEUE, PodGroup
from bayplan.queues.accounts import Accounts, Usage
from bayplan.queues.groups import Group
from bayplan.queues.ledger import Ledger
from bayplan.queues.members import TaskStatus
from bayplan.queues.resources import NOTHING, Resources
from bayplan.queues.tree import QueueNode, QueueTree


class VolcanoQueueTree(QueueTree):
    """Queues that are there if they were made, and open if they say so themselves."""

    __slots__ = ()
    implied = (ROOT_QUEUE,)

    @staticmethod
    def root_capability(written: Resources) -> Resources:
        """Limit resources that root's capability does not name to nothing, if it names any."""
        return Resources(written.amounts) if written.amounts else written

    def deciding_queues(self, node: QueueNode) -> tuple[str, ...]:
        """Look at the queue's own state only, whatever those above it have."""
        return node.path[:1]

    def is_open_state(self, state: str) -> bool:
        """Take a queue that has no state yet for closed."""
        return state == "Open"


class VolcanoAccounts(Accounts):
    """Sums of which some are those of the leaf only."""

    def note_shares(self, path: Sequence[str]) -> None:
        """Keep the shares of inner queues as they were at the beginning of the cycle."""
        super().note_shares(path[:1])

    def change_above(self, change: Usage) -> Usage:
        """Count reservations in the leaf only."""
        return replace(change, reserved=NOTHING)

    def reserved_in(self, queue: str, leaf: str) -> Resources:
        """Count reservations in the leaf only: two leaves together pass their parent's limit."""
        return super().reserved_in(queue, leaf) if queue == leaf else NOTHING

    def counts_reservations(self, request: Resources, reserved: Resources) -> bool:
        """Let reservations that together pass the limit keep each other from being placed.

        By weight none count.
        """
        del request, reserved
        return not self.policy.shares_nodes

    def promised(self, queue: str, name: str) -> float:
        """Leave reservations out: what was promised stands until the end of the cycle."""
        usage = self.usage(queue)
        return usage.allocated[name] + usage.inqueue[name] - usage.elastic[name]

    def limit(self, queue: str) -> Resources:
        """Let queues have by weight what they deserve of the total, and no more."""
        return self.quota(queue).deserved if self.policy.shares_nodes else super().limit(queue)

    def is_overused(self, queue: str) -> bool:
        """Whether a queue has all that it deserves by weight."""
        if not self.policy.shares_nodes:
            return False
        return self.quota(queue).deserved.fits(self.usage(queue).allocated)


class VolcanoGroup(Group):
    """A group whose sums are those of the beginning of a cycle, and whose pods that request nothing
    count as placed.
    """

    def __init__(self, podgroup: PodGroup, priority: int = 0) -> None:
        self._frozen: Usage | None = None
        super().__init__(podgroup, priority)

    def freeze(self) -> None:
        """Let what is requested, promised and elastic stand as it is, whatever is placed."""
        self._frozen = self.usage

    def admit(self) -> None:
        """Promise a group all that it needs, beside what it has."""
        if self._frozen is not None:
            promised = self.without_foreign(self.needs)
            self._frozen = replace(self._frozen, inqueue=self._frozen.inqueue + promised)
        super().admit()

    @property
    def usage(self) -> Usage:
        """Count what is placed in the cycle in the allocated amounts only."""
        if self._frozen is None:
            return super().usage
        allocated = self.allocated + self.pipelined
        return replace(self._frozen, allocated=allocated, reserved=self.reserved)

    @property
    def held_to_start(self) -> Resources:
        """Leave out what it reserves."""
        return self.allocated

    @property
    def light_roles(self) -> Counter[str]:
        """Return by task the number of best-effort pods without a node: they count as placed."""
        pending = self.of_status(TaskStatus.PENDING)
        return Counter(one.role for one in pending if one.is_best_effort)

    @property
    def has_enough(self) -> bool:
        """Count pods that request nothing."""
        return self.ready_count + self.light_roles.total() >= self.min_member

    @property
    def will_have_enough(self) -> bool:
        """Count pods that request nothing."""
        return self.placed_count + self.light_roles.total() >= self.min_member

    def role_counts(self, *, ready_only: bool = True) -> Counter[str]:
        """Count pods that request nothing."""
        return super().role_counts(ready_only=ready_only) + self.light_roles

    @property
    def needed_to_run(self) -> int:
        """Call a group that needs no pods Completed while its pods wait."""
        return self.min_member


class VolcanoLedger(Ledger):
    """The ledger with Volcano's tree, sums and groups."""

    tree_type = VolcanoQueueTree
    accounts_type = VolcanoAccounts
    group_type = VolcanoGroup

    def freeze(self) -> None:
        """Let what is requested of queues, promised and elastic stand as it is for a cycle."""
        _ = self.accounts
        for group in self.groups.values():
            if isinstance(group, VolcanoGroup):
                group.freeze()
                self.count(group)
