"""Nodes, volumes, queues and scaling over time: what is ready, what it costs, and why it came.

An instance costs from its purchase on; one that could not be had costs nothing after all. A node
that is ready and has no pods but those of DaemonSets is idle: its price is lost.

A node's limit is what CSINode says or, where it says none, what the node publishes; nodes for which
nobody says a limit do not count in it. `full` counts nodes that have no place left.

A queue's share is the largest, over resources, of what it has allocated by what it deserves; where
nothing is said of what it deserves, by what it may have at most. Queues without either have no
share.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec

from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.store.entry import Key
from bayplan.embedded.control.facts import AttachmentFacts, PodFacts
from bayplan.embedded.nodes.machines import Instance
from bayplan.kube.quantity import QuantityError, parse
from bayplan.lab.measuring.pods import is_of_daemon_set
from bayplan.lab.measuring.series import MOST_EVENTS, ScaleEvent, SeriesBook

READY, BOOTING, UNWELL = "nodes/ready", "nodes/booting", "nodes/unwell"
START = "start"
RATE, IDLE = "cost/rate", "cost/idle"


@dataclass(slots=True)
class _Sold:
    group: str
    price: float
    bought: float
    failed: bool = False


@dataclass(slots=True)
class _Node:
    ready: bool | None = None
    """What it says of itself; None before it is there, and after."""
    was_ready: bool = False
    stage: str = ""
    idle: float = 0.0
    """What it costs for nothing an hour, just now."""


class NodeMeter:
    """Follows instances, nodes, and which nodes have pods."""

    def __init__(self, book: SeriesBook) -> None:
        self._book = book
        self._sold: dict[str, _Sold] = {}
        self._nodes: dict[str, _Node] = {}
        self._pods: Counter[str] = Counter()
        self._places: dict[Key, tuple[str, str]] = {}
        self._started: Counter[str] = Counter()
        """By group, how many were there from the start."""
        self.counts: Counter[str] = Counter()
        """Of the whole run: there from the start, bought, failed, removed."""

    def instance(self, name: str, one: Instance | None, now: float) -> str:
        """An instance came, changed, or went; says in a word what became of it, if anything."""
        known = self._sold.get(name)
        if one is None and known is not None:
            del self._sold[name]
            return self._became("removed", name, known, -1, now)
        if one is not None and known is None:
            price = one.group.instance_type.price
            known = self._sold[name] = _Sold(one.group.name, price, now)
            return self._became(self._came(one, now), name, known, +1, now)
        if one is not None and known is not None and one.state == "failed" and not known.failed:
            self._book.of(RATE).correct(known.bought, now, -known.price)
            said = self._became("failed", name, known, -1, now)
            known.failed = True
            self._judge(name, now)
            return said
        return ""

    def _became(self, what: str, name: str, known: _Sold, change: int, now: float) -> str:
        if not known.failed:
            self._book.of(RATE).add(now, change * known.price)
            self._book.of(f"groups/{known.group}").add(now, change)
        self._judge(name, now)
        self.counts[what] += 1
        return what

    def _came(self, one: Instance, now: float) -> str:
        """Whether an instance was there from the start: an autoscaler may buy in the same moment,
        but only after those that the cluster file counts.
        """
        if now <= 0 and self._started[one.group.name] < one.group.count:
            self._started[one.group.name] += 1
            return START
        return "bought"

    def group_of(self, name: str) -> str:
        """The group of an instance."""
        known = self._sold.get(name)
        return known.group if known is not None else ""

    def node(self, name: str, ready: bool | None, now: float) -> None:
        """A node says whether it is ready; None if it is gone."""
        one = self._nodes.setdefault(name, _Node())
        one.ready = ready
        one.was_ready = one.was_ready or bool(ready)
        self._judge(name, now)

    def pod(self, key: Key, pod: PodFacts | None, now: float) -> None:
        """A pod came to a node, or left it."""
        known = self._places.get(key)
        place = None
        if pod is not None and pod.node and not pod.terminal and not is_of_daemon_set(pod):
            place = (pod.uid, pod.node)
        if place == known:
            return
        if known is not None:
            del self._places[key]
            self._fill(known[1], -1, now)
        if place is not None:
            self._places[key] = place
            self._fill(place[1], +1, now)

    def _fill(self, node: str, change: int, now: float) -> None:
        self._pods[node] += change
        self._judge_idle(node, now)
        if not self._pods[node]:
            del self._pods[node]

    def _judge(self, name: str, now: float) -> None:
        """Count a node where it belongs, and forget it once nothing of it is left."""
        one = self._nodes.setdefault(name, _Node())
        stage = _stage(one, self._sold.get(name))
        if stage != one.stage:
            if one.stage:
                self._book.of(one.stage).add(now, -1)
            if stage:
                self._book.of(stage).add(now, 1)
            one.stage = stage
        self._judge_idle(name, now)
        if one.ready is None and name not in self._sold:
            del self._nodes[name]

    def _judge_idle(self, name: str, now: float) -> None:
        one, sold = self._nodes.get(name), self._sold.get(name)
        if one is None:
            return
        lost = 0.0
        if one.stage == READY and sold is not None and not self._pods.get(name):
            lost = sold.price
        if lost != one.idle:
            self._book.of(IDLE).add(now, lost - one.idle)
            one.idle = lost


def _stage(one: _Node, sold: _Sold | None) -> str:
    """A node boots until it has been ready once; later it is ready or unwell."""
    if one.ready:
        return READY
    if one.was_ready:
        return UNWELL if one.ready is not None else ""
    return BOOTING if sold is not None and not sold.failed else ""


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
