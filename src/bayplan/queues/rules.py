"""The rules of a cycle over a static cluster: ours, or Volcano's."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from bayplan.queues.actions import IN_ORDER, Action, act
from bayplan.queues.ledger import Ledger
from bayplan.queues.session import Session
from bayplan.queues.volcano import cycle as volcano
from bayplan.queues.volcano.ledger import VolcanoLedger


@dataclass(frozen=True, slots=True)
class Rules:
    """A ledger, a session over it, and what is done in a cycle."""

    ledger: type[Ledger]
    session: type[Session]
    run: Callable[[Session, Iterable[Action]], None]

    def act(self, session: Session, actions: Iterable[Action] = IN_ORDER) -> None:
        """Take some actions, one after the other."""
        self.run(session, actions)


OURS = Rules(Ledger, Session, act)
VOLCANO = Rules(VolcanoLedger, volcano.VolcanoSession, volcano.act)
