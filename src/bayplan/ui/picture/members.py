"""The pods of each pod group, to update them when the group changes its queue."""

from __future__ import annotations

from collections.abc import Iterable

from bayplan.fit.indexes import NameIndex
from bayplan.kube.pods import Pod
from bayplan.queues.members import group_key_of


class PodGroupIndex:
    """The pods of each pod group, by key."""

    def __init__(self, pods: Iterable[Pod]) -> None:
        self._index = NameIndex()
        self._group_of: dict[str, str] = {}
        for pod in pods:
            self.put(pod)

    def of(self, group: str) -> Iterable[str]:
        """Return the pods of a group."""
        return self._index.of(group)

    def put(self, pod: Pod) -> None:
        """Add or update a pod."""
        group = group_key_of(pod)
        if self._group_of.get(pod.key) != group:
            self.drop(pod.key)
            self._group_of[pod.key] = group
            self._index.add(group, pod.key)

    def drop(self, key: str) -> None:
        """Remove a pod."""
        group = self._group_of.pop(key, None)
        if group is not None:
            self._index.discard(group, key)
