"""Nodes and money over time: who is ready, who boots, what it all costs, and what for nothing.

An instance costs from its purchase on; one that could not be had costs nothing after all. A node
that is ready and has no pods but those of DaemonSets is idle: its price is lost.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from bayplan.embedded.apiserver.store.entry import Key
from bayplan.embedded.control.facts import PodFacts
from bayplan.embedded.nodes.machines import Instance
from bayplan.lab.measuring.pods import is_of_daemon_set
from bayplan.lab.measuring.series import SeriesBook

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
