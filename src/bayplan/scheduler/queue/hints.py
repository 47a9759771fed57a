"""Queueing hints: the interface between the queue and the plugins."""

from __future__ import annotations

from collections.abc import Collection, Hashable
from typing import Protocol, TypeVar

from bayplan.kube.pods import Pod

E_contra = TypeVar("E_contra", contravariant=True)
Plugins = frozenset[str]


class QueueingHints(Protocol[E_contra]):
    """Decides which events may help which pods; `E_contra` is the type of events."""

    def priority(self, pod: Pod) -> int:
        """Return the priority of a pod."""
        ...

    def signature(self, pod: Pod) -> Hashable:
        """Return a key that is equal for pods that the same events help; None for one without
        equal.
        """
        ...

    def concerns(self, plugins: Plugins, event: E_contra) -> bool:
        """Whether an event may help any pod that these plugins refused."""
        ...

    def marks(self, pod: Pod) -> Collection[str]:
        """Return what distinguishes a pod from others of its signature: its claims."""
        ...

    def sets_apart(self, plugins: Plugins, event: E_contra) -> Collection[str] | None:
        """Return the marks of pods that an event may help though it does not help others of their
        signature, or the reverse; None if each pod has to be asked.
        """
        ...

    def helps(self, pod: Pod, plugins: Plugins, event: E_contra) -> bool:
        """Whether an event may unblock a pod that these plugins refused."""
        ...
