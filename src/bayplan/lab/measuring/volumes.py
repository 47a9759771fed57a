"""Volumes over time, by driver: how many are attached, and how many all nodes could attach.

A node's limit is what CSINode says or, where it says none, what the node publishes; nodes for which
nobody says a limit do not count in it. `full` counts nodes that have no place left.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from bayplan.embedded.control.facts import AttachmentFacts
from bayplan.lab.measuring.series import SeriesBook


class VolumeMeter:
    """Follows attachments and limits."""

    def __init__(self, book: SeriesBook) -> None:
        self._book = book
        self._attached: dict[str, tuple[str, str]] = {}
        self._used: Counter[tuple[str, str]] = Counter()
        self._limits: dict[str, dict[str, int]] = {}
        self._full: set[tuple[str, str]] = set()

    def attachment(self, name: str, one: AttachmentFacts | None, now: float) -> None:
        """An attachment came, changed, or went."""
        known = self._attached.get(name)
        place = None
        if one is not None and one.status.attached:
            place = (one.spec.node_name, one.spec.attacher)
        if place == known:
            return
        if known is not None:
            del self._attached[name]
            self._use(known, -1, now)
        if place is not None:
            self._attached[name] = place
            self._use(place, +1, now)

    def limits(self, node: str, limits: Mapping[str, int | None], now: float) -> None:
        """A node's drivers and their limits, as they are now; none if it is gone."""
        known = self._limits.pop(node, {})
        said = {driver: limit for driver, limit in limits.items() if limit is not None}
        if said:
            self._limits[node] = said
        for driver in sorted({*known, *said}):
            change = said.get(driver, 0) - known.get(driver, 0)
            if change or driver not in known:
                self._book.of(f"limits/{driver}").add(now, change)
            self._judge((node, driver), now)

    def _use(self, place: tuple[str, str], change: int, now: float) -> None:
        self._used[place] += change
        self._book.of(f"volumes/{place[1]}").add(now, change)
        if not self._used[place]:
            del self._used[place]
        self._judge(place, now)

    def _judge(self, place: tuple[str, str], now: float) -> None:
        node, driver = place
        limit = self._limits.get(node, {}).get(driver)
        is_full = limit is not None and self._used[place] >= limit
        if is_full == (place in self._full):
            return
        (self._full.add if is_full else self._full.discard)(place)
        self._book.of(f"full/{driver}").add(now, 1 if is_full else -1)
