"""What the agent remembers of each node: when to try again, and what was last said of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from bayplan.base.pacing import Backoff
from bayplan.node.deciding import Wanted

FIRST_WAIT = 1.0
LONGEST_WAIT = 300.0
"""Seconds: so long a change that fails, or that somebody undoes, may wait for the next try."""
PEACE = 2 * LONGEST_WAIT
"""Seconds without having to write again, after which nobody is taken to undo it any more."""


@dataclass(slots=True)
class Page:
    """One node."""

    uid: str
    failing: Backoff
    fighting: Backoff
    due: float = 0.0
    """Not to be tried before, in the clock's seconds."""
    tried: Wanted = field(default_factory=Wanted)
    """What was last wanted of it."""
    said: Wanted = field(default_factory=Wanted)
    """What was last written."""
    written: float = float("-inf")
    """When it was."""
    unreadable: int = 0
    """Keys of the node that cannot be a limit."""
    told: tuple[str, ...] = ()
    """What has been complained of, so that it is not said again."""

    @classmethod
    def new(cls, rng: Random, uid: str) -> Page:
        """Of a node that has just come."""
        waits = (Backoff(rng, FIRST_WAIT, LONGEST_WAIT), Backoff(rng, FIRST_WAIT, LONGEST_WAIT))
        return cls(uid, *waits)

    @property
    def is_waiting(self) -> bool:
        """Whether the last change failed."""
        return self.failing.failures > 0

    def is_contested(self, now: float) -> bool:
        """Whether somebody else keeps changing what we have written."""
        return self.fighting.failures > 1 and now - self.written < PEACE

    def failed(self, now: float) -> float:
        """It could not be written; the seconds until the next try."""
        wait = self.failing.next_wait()
        self.due = now + wait
        return wait

    def wrote(self, now: float, said: Wanted) -> None:
        """It was written. If it was written just before, next time takes longer: somebody else is
        at the same keys.
        """
        again = said == self.said and now - self.written < PEACE
        self.failing.reset()
        if again:
            self.due = now + self.fighting.next_wait()
        else:
            self.fighting.reset()
            self.due = 0.0
        self.said, self.written = said, now

    def right(self) -> None:
        """There was nothing to write."""
        self.failing.reset()
        self.due = 0.0
