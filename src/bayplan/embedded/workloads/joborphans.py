"""Pods that wait to be counted by a Job that will not count them any more.

A job may be deleted, or end, while pods still carry its finalizer: they could never go.
"""

from __future__ import annotations

from collections.abc import Iterable

from bayplan.embedded.apiserver.store.entry import Key
from bayplan.embedded.apiserver.store.watchcache import Change
from bayplan.embedded.control.controller import Controller, Plan, Stage
from bayplan.embedded.control.facts import PodFacts
from bayplan.embedded.control.storages import JOBS, PODS
from bayplan.embedded.workloads.jobstatus import finished
from bayplan.embedded.workloads.jobtally import tracked, untrack


class JobOrphans(Controller[Key]):
    """Keyed by pod."""

    name = "job-orphans"
    storages = (JOBS, PODS)

    def __init__(self, stage: Stage) -> None:
        self._view = stage.view

    def notice(self, change: Change) -> Iterable[Key]:
        """A pod that nobody will count; all pods of a job that ends, or goes."""
        entry = change.entry
        if entry.key.storage == JOBS:
            gone = change.deleted or not self._counts(entry.uid)
            return [key for key, _ in self._view.pods_of(entry.uid)] if gone else ()
        pod = None if change.deleted else self._view.pods.get(entry.key)
        return (entry.key,) if pod is not None and self._orphaned(pod) else ()

    def decide(self, key: Key) -> Plan:
        """Let the pod go."""
        pod = self._view.pods.get(key)
        return [untrack(key)] if pod is not None and self._orphaned(pod) else []

    def _orphaned(self, pod: PodFacts) -> bool:
        if not tracked(pod):
            return False
        return pod.controller is None or not self._counts(pod.controller.uid)

    def _counts(self, uid: str) -> bool:
        """Whether there is a job that still counts its pods."""
        entry = self._view.store.by_uid(uid)
        if entry is None or entry.key.storage != JOBS or entry.deleting:
            return False
        job = self._view.object(entry.key)
        return job is not None and not finished(job)
