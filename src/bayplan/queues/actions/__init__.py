"""What is done in a cycle, in Volcano's words; each action is a function over a session."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Literal

from bayplan.queues.actions.allocate import allocate
from bayplan.queues.actions.backfill import backfill
from bayplan.queues.actions.enqueue import enqueue
from bayplan.queues.actions.eviction import preempt, reclaim
from bayplan.queues.session import Session

Action = Literal["enqueue", "allocate", "backfill", "preempt", "reclaim"]
ACTIONS: dict[Action, Callable[[Session], None]] = {
    "enqueue": enqueue,
    "allocate": allocate,
    "backfill": backfill,
    "preempt": preempt,
    "reclaim": reclaim,
}
IN_ORDER: tuple[Action, ...] = ("enqueue", "allocate", "preempt", "reclaim", "backfill")
"""What a cycle does, unless told otherwise."""


def act(session: Session, actions: Iterable[Action] = IN_ORDER) -> None:
    """Take some actions, one after the other."""
    for name in actions:
        ACTIONS[name](session)


__all__ = ["ACTIONS", "IN_ORDER", "Action", "act"]
