"""Pods of so low a priority that no node is kept for them, known as they come and go.

They are not seen at all: they use nothing, keep no node, and need no other place.
"""

from __future__ import annotations

from bayplan.fit.events import Event
from bayplan.kube.pods import Pod


def is_expendable(pod: Pod, cutoff: int) -> bool:
    """Whether nothing is kept for a pod."""
    return pod.spec.priority is not None and pod.spec.priority < cutoff


class Expendables:
    """The keys of all expendable pods."""

    def __init__(self, cutoff: int) -> None:
        self._cutoff = cutoff
        self.keys: set[str] = set()

    def hear(self, event: Event) -> None:
        """An object came, changed or went."""
        if event.kind is not Pod:
            return
        if isinstance(event.after, Pod) and is_expendable(event.after, self._cutoff):
            self.keys.add(event.key)
        else:
            self.keys.discard(event.key)
