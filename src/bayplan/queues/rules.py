"""Where decisions are Volcano's to the letter, and where they are ours.

The arithmetic is one. `OURS` is what runs; `VOLCANO` is what Volcano 1.15 does, its defects too,
so that the two can be compared decision by decision. Each switch is named after the defect or the
habit that it turns on; `docs/queues.md` tells what each does to people, and why ours is otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass, fields


@dataclass(frozen=True, slots=True)
class Rules:
    """Volcano's habits, each on or off."""

    stale_ancestor_share: bool = False
    """Allocating refreshes the share of the leaf only, not of the queues above it."""
    reserved_not_in_ancestors: bool = False
    """Reservations count in the leaf only: two leaves together pass their parent's limit."""
    reserved_deadlock: bool = False
    """Reservations that together pass the limit keep each other from being placed."""
    gates_of_incomplete_gang: bool = False
    """Quota, gates and nodes are looked at pod by pod, so that a part of a gang may lose its gates;
    a pod whose gate goes is placed in a later cycle, one of a task that fits nowhere stops the
    others of the task, and without nodes no gate goes.
    """
    best_effort_stays_gated: bool = False
    """A pod that requests nothing keeps its gate for ever."""
    best_effort_counts_as_placed: bool = False
    """A pod that requests nothing counts towards its gang before it has a node."""
    reclaim_ignores_ancestor_limit: bool = False
    """Reclaiming looks at the limit of the leaf only: victims die, the reclaimer cannot start."""
    needless_eviction: bool = False
    """Nobody looks for a node that has room before others are evicted."""
    closed_without_min_resources: bool = False
    """A group without minResources is admitted into a queue that is not open."""
    backfill_into_closed: bool = False
    """Pods that request nothing are placed for a queue that is not open."""
    root_partial_capability: bool = False
    """A resource that root's capability does not name is limited to nothing."""
    zero_min_member_completed: bool = False
    """A group that needs no member is called Completed while its pods wait."""
    state_must_be_said: bool = False
    """A queue whose status says no state yet is not open."""
    default_must_be_made: bool = False
    """There is no queue `default` unless somebody made it."""
    open_below_closed: bool = False
    """A queue is open whatever the state of those above it."""
    session_keeps_inqueue: bool = False
    """What is held back for admitted groups, and what is elastic, is reckoned at the beginning of a
    cycle and not lowered by placements in it.
    """
    proportion_caps_at_share: bool = False
    """Under the policy proportion a queue may have what it deserves of the total and no more."""
    room_within_incomplete_gang: bool = False
    """Pods leave for others of their group, or nodes are kept for them, though it cannot start."""
    spared_pods_run: bool = False
    """A pod that was to be evicted, and then was not, counts as running though it is only bound."""
    victims_stay_reserved: bool = False
    """An evicted pod that asks for gates reserves what it had, so that evicting frees no quota."""
    dequeue_strategy_ignored: bool = False
    """`fifo` is as good as `traverse`."""
    unasked_gates_stay: bool = False
    """A pod that has the gate, and does not ask for it by annotation, keeps it for ever."""
    gated_pods_do_not_preempt: bool = False
    """A pod that waits for quota behind its gate makes nobody leave."""

    @classmethod
    def all_on(cls) -> Rules:
        """Every habit of Volcano's."""
        return cls(**{one.name: True for one in fields(cls)})


OURS = Rules()
VOLCANO = Rules.all_on()
