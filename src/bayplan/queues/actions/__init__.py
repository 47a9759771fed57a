"""The actions of a cycle, with Volcano's names; each is a function over a session."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Literal

from bayplan.queues.actions.eviction import preempt, reclaim
from bayplan.queues.actions.turns import allocate, enqueue
from bayplan.queues.session import Session

Action = Literal["enqueue", "allocate", "backfill", "preempt", "reclaim"]
IN_ORDER: tuple[Action, ...] = ("enqueue", "allocate", "preempt", "reclaim", "backfill")
"""What a cycle does, unless told otherwise."""


def backfill(_session: Session) -> None:
    """Do nothing: pods that request nothing have had their turns like all others."""


Actions = Mapping[Action, Callable[[Session], None]]
ACTIONS: Actions = {
    "enqueue": enqueue,
    "allocate": allocate,
    "backfill": backfill,
    "preempt": preempt,
    "reclaim": reclaim,
}


def act(session: Session, actions: Iterable[Action] = IN_ORDER, known: Actions = ACTIONS) -> None:
    """Take some actions, one after the other."""
    for name in actions:
        known[name](session)


__all__ = ["ACTIONS", "IN_ORDER", "Action", "Actions", "act"]
