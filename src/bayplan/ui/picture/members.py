"""Which pods are of which group, so that a group that changes its queue finds its own."""

from __future__ import annotations

from collections.abc import Iterable

from bayplan.fit.indexes import NameIndex
from bayplan.kube.pods import Pod
from bayplan.queues.members import group_key_of


class Members:
    """The pods of groups, by their keys."""

    def __init__(self, pods: Iterable[Pod]) -> None:
        self._index = NameIndex()
        self._group_of: dict[str, str] = {}
        for pod in pods:
            self.put(pod)

    def of(self, group: str) -> Iterable[str]:
        """The pods of a group."""
        return self._index.of(group)

    def put(self, pod: Pod) -> None:
        """A pod is there, or has changed."""
        group = group_key_of(pod)
        if self._group_of.get(pod.key) != group:
            self.drop(pod.key)
            self._group_of[pod.key] = group
            self._index.add(group, pod.key)

    def drop(self, key: str) -> None:
        """A pod is gone."""
        group = self._group_of.pop(key, None)
        if group is not None:
            self._index.discard(group, key)
