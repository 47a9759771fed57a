"""Queues over time: what each has of what it deserves.

A queue's share is the largest, over resources, of what it has allocated by what it deserves; where
nothing is said of what it deserves, by what it may have at most. Queues without either have no
share.
"""

from __future__ import annotations

from collections.abc import Mapping

from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.kube.quantity import QuantityError, parse
from bayplan.lab.measuring.series import SeriesBook

QUEUES = "queues.scheduling.volcano.sh"


class QueueMeter:
    """Follows Queues, whose status says what they have."""

    def __init__(self, book: SeriesBook) -> None:
        self._book = book

    def observe(self, name: str, queue: JsonObject | None, now: float) -> None:
        """A queue came, changed, or went."""
        share = 0.0 if queue is None else share_of(queue)
        if share is not None:
            self._book.of(f"share/{name}").set(now, share)


def share_of(queue: JsonObject) -> float | None:
    """What a queue has of what it deserves; None if nobody says what that is."""
    spec = queue.get("spec") or {}
    wanted = _amounts(spec.get("deserved")) or _amounts(spec.get("capability"))
    has = _amounts((queue.get("status") or {}).get("allocated"))
    shares = [has.get(name, 0.0) / amount for name, amount in wanted.items() if amount > 0]
    return max(shares, default=None)


def _amounts(said: object) -> Mapping[str, float]:
    """Amounts that can be read; a queue with others is told so by the scheduler."""
    found = {}
    for name, text in said.items() if isinstance(said, dict) else ():
        try:
            found[str(name)] = float(parse(text))
        except (QuantityError, TypeError):
            continue
    return found
