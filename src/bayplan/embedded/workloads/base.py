"""What controllers of workloads have in common: they hear of their objects and of their pods."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable

from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.store.entry import Key
from bayplan.embedded.apiserver.store.watchcache import Change
from bayplan.embedded.control.controller import Controller, Plan, Stage
from bayplan.embedded.control.facts import PodFacts, moment
from bayplan.embedded.control.storages import PODS


class Workload(Controller[Key]):
    """A controller of one kind of workload; keyed by its object."""

    storage = ""
    children: tuple[str, ...] = (PODS,)

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._view = stage.view

    def notice(self, change: Change) -> Iterable[Key]:
        """The object itself, or the one that owns a child."""
        entry = change.entry
        if entry.key.storage == self.storage:
            return (entry.key,)
        owners = [*entry.owners, *(change.previous.owners if change.previous else ())]
        found = (self._view.store.by_uid(uid) for uid in dict.fromkeys(owners))
        return [one.key for one in found if one and one.key.storage == self.storage]

    def decide(self, key: Key) -> Plan:
        """What to do about the workload, unless it is going."""
        owner = self._view.object(key)
        if owner is None or "deletionTimestamp" in owner["metadata"]:
            return self.let_go(key)
        return self.reconcile(key, owner)

    @abstractmethod
    def reconcile(self, key: Key, owner: JsonObject) -> Plan:
        """Bring what there is closer to what is wanted."""

    def let_go(self, key: Key) -> Plan:  # noqa: ARG002 - for those that remember something
        """The workload is gone, or going; the garbage collector takes its children."""
        return []

    def pods(self, owner: JsonObject) -> list[tuple[Key, PodFacts]]:
        """The pods that the workload manages, in order."""
        return self._view.pods_of(owner["metadata"]["uid"])

    def available(self, pod: PodFacts, owner: JsonObject) -> bool:
        """Whether a pod has been ready for as long as the workload wants."""
        return available(pod, owner, self._stage.seconds())

    def count_available(self, pods: Iterable[PodFacts], owner: JsonObject) -> int:
        """How many of these pods have been ready for as long as the workload wants."""
        now = self._stage.seconds()
        return sum(pod.ready and available(pod, owner, now) for pod in pods)


def available(pod: PodFacts, owner: JsonObject, now: float) -> bool:
    """Whether a pod has been ready for as long as its workload wants."""
    wanted = owner["spec"].get("minReadySeconds") or 0
    return pod.ready and (not wanted or now - moment(pod.ready_since) >= wanted)


def ordinal(name: str) -> int:
    """The number at the end of a name; -1 if there is none."""
    number = name.rpartition("-")[2]
    return int(number) if number.isdigit() and len(number) < 10 else -1
