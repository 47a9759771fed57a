"""The simplest use of the model as a scheduler: each pod in turn goes where `Snapshot` says.

It preempts nobody and reserves nothing. Pods that fit nowhere are tried again, at most every few
seconds, when something has changed; why they do not fit is written into their PodScheduled
condition, as a scheduler does.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from bayplan.cli.pending import likeness
from bayplan.cli.simulated.mirror import MIRRORED, Mirror
from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.store.entry import Key
from bayplan.embedded.apiserver.store.journal import Change as Written
from bayplan.embedded.control.controller import Again, Bind, Change, Controller, Edit, Plan, Stage
from bayplan.embedded.control.storages import PODS
from bayplan.kube.pods import Pod

PAUSE_SECONDS = 5.0
BINDING_SECONDS = 30.0
SCHEDULER = "default-scheduler"
_ALL = Key(PODS, "", "")


class Placer(Controller[Key]):
    """Keyed by pod; one key of no pod stands for all that wait."""

    name = "placer"
    storages = tuple(MIRRORED)

    def __init__(self, stage: Stage, mirror: Mirror) -> None:
        self._stage = stage
        self._mirror = mirror
        self._waiting: dict[Key, None] = {}
        self._tried = float("-inf")
        self._alike: dict[Hashable, str] = {}
        """What was said of pods like these, as long as nothing changes."""

    def notice(self, change: Written) -> Iterable[Key]:
        """New pods at once; those that wait when anything else changed."""
        entry = change.entry
        if entry.key.storage == PODS and not entry.fields.get("spec.nodeName"):
            if change.deleted:
                self._waiting.pop(entry.key, None)
                return ()
            known = entry.key in self._waiting
            return () if known and change.previous is not None else (entry.key,)
        self._waiting.pop(entry.key, None)
        self._alike.clear()
        return (_ALL,) if self._waiting else ()

    def decide(self, key: Key) -> Plan:
        """Place one pod, or everybody who waits."""
        self._mirror.snapshot.expire(self._stage.seconds())
        if key != _ALL:
            return self._place(key)
        left = self._tried + PAUSE_SECONDS - self._stage.seconds()
        if left > 0:
            return [Again(left)]
        self._tried = self._stage.seconds()
        self._alike.clear()
        return [step for waiting in list(self._waiting) for step in self._place(waiting)]

    def _place(self, key: Key) -> Plan:
        pod, facts = self._mirror.pod(key), self._stage.view.pods.get(key)
        if pod is None or facts is None or facts.node or facts.deleting:
            self._waiting.pop(key, None)
            return []
        if pod.spec.scheduling_gates or pod.spec.scheduler_name not in ("", SCHEDULER):
            return []
        why = self._refusal(pod)
        if why is None:
            self._waiting.pop(key, None)
            return self._bind(key, pod)
        self._waiting[key] = None
        told = facts.condition("PodScheduled")
        if told is not None and told.message == why:
            return []
        return [Change(key, _unschedulable(why, self._stage.now()), "status")]

    def _bind(self, key: Key, pod: Pod) -> Plan:
        """Bind a pod; until that is seen in the store, it is assumed."""
        snapshot = self._mirror.snapshot
        decision = snapshot.decide(pod)
        if decision.node is None:
            return []
        seen_by = self._stage.seconds() + BINDING_SECONDS
        snapshot.finish_binding(snapshot.assume(pod, decision), seen_by)
        return [Bind(key, decision.node)]

    def _refusal(self, pod: Pod) -> str | None:
        """Why a pod fits nowhere; replicas that fit nowhere do so for the same reason."""
        snapshot = self._mirror.snapshot
        like = likeness(snapshot, pod)
        if like is not None and like in self._alike:
            return self._alike[like]
        if snapshot.decide(pod).node is not None:
            self._alike.clear()  # what is placed now changes what is said of the others
            return None
        why = snapshot.explain(pod, with_fixes=False).message
        if like is not None:
            self._alike[like] = why
        return why


def _unschedulable(why: str, now: str) -> Edit:
    def edit(pod: JsonObject) -> JsonObject:
        status = pod.setdefault("status", {})
        others = [one for one in status.get("conditions") or () if one["type"] != "PodScheduled"]
        condition = {
            "type": "PodScheduled",
            "status": "False",
            "reason": "Unschedulable",
            "message": why,
            "lastTransitionTime": now,
        }
        status["conditions"] = [*others, condition]
        return pod

    return edit
