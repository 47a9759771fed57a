"""Purchases and removals one by one, with why: bounded, those of one moment together."""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from bayplan.lab.measuring.result import MOST_EVENTS, ScaleEvent
from bayplan.lab.measuring.series import SeriesBook

MOST_CAUSES = 3
_LONGEST = 200
_NODE = re.compile(r"\bnode (\S+) (?:removed|of group)")
FROM_THE_START = "there from the start"


class ScaleLog:
    """What happened to the groups."""

    def __init__(self, book: SeriesBook) -> None:
        self._book = book
        self._said: dict[str, str] = {}
        self._gone: dict[str, int] = {}
        self.events: list[ScaleEvent] = []
        self.left_out = 0

    def said(self, node: str, text: str) -> None:
        """What the autoscaler says of a node: if it goes or has just gone, that is why."""
        index = self._gone.get(node)
        if index is None:
            self._said[node] = text[:_LONGEST]
        else:
            self.events[index] = msgspec.structs.replace(self.events[index], why=text[:_LONGEST])

    def all_said(self, text: str) -> None:
        """What it says of all the cluster, a node in it."""
        named = _NODE.search(text)
        if named is not None:
            self.said(named[1], text)

    def bought(self, group: str, waiting: Sequence[tuple[str, int]], now: float) -> None:
        """An instance was bought while so many pods waited, by cause."""
        told = ", ".join(f"{count} for {cause}" for cause, count in waiting[:MOST_CAUSES])
        self._note("bought", group, f"pods waiting: {told}" if told else "", now)

    def started(self, group: str, now: float) -> None:
        """An instance was there from the start."""
        self._note("bought", group, FROM_THE_START, now)

    def failed(self, group: str, error: str, now: float) -> None:
        """An instance could not be had."""
        self._note("failed", group, error[:_LONGEST], now)

    def removed(self, name: str, group: str, now: float) -> None:
        """An instance was given back."""
        self._note("removed", group, self._said.pop(name, ""), now)
        if not self.left_out:
            self._gone[name] = len(self.events) - 1

    def _note(self, what: str, group: str, why: str, now: float) -> None:
        self._book.of(f"scaling/{what}").add(now, 1)
        time = round(now, 3)
        last = self.events[-1] if self.events else None
        from_start = why == FROM_THE_START
        if (
            last
            and (last.time, last.what, last.group) == (time, what, group)
            and (last.why == FROM_THE_START) == from_start
        ):
            self.events[-1] = msgspec.structs.replace(last, count=last.count + 1)
        elif len(self.events) < MOST_EVENTS:
            self.events.append(ScaleEvent(time=time, what=what, group=group, count=1, why=why))
        else:
            self.left_out += 1
