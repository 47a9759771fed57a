"""What the queue asks of the model."""

from __future__ import annotations

from collections.abc import Collection, Hashable
from typing import Protocol, TypeVar

from bayplan.kube.pods import Pod

E_contra = TypeVar("E_contra", contravariant=True)
Plugins = frozenset[str]


class Judge(Protocol[E_contra]):
    """Knows pods and events; `E_contra` is what an event is."""

    def priority(self, pod: Pod) -> int:
        """How important a pod is."""
        ...

    def likeness(self, pod: Pod) -> Hashable:
        """Equal for pods that an event helps, or not, alike; None for one that has no like."""
        ...

    def concerns(self, plugins: Plugins, event: E_contra) -> bool:
        """Whether an event may help anybody whom these plugins refused."""
        ...

    def marks(self, pod: Pod) -> Collection[str]:
        """What sets a pod apart from others that are alike: the claims that it names."""
        ...

    def sets_apart(self, plugins: Plugins, event: E_contra) -> Collection[str] | None:
        """The marks of those whom an event may help though it does not help their like, or the
        reverse; None if each has to be asked.
        """
        ...

    def helps(self, pod: Pod, plugins: Plugins, event: E_contra) -> bool:
        """Whether an event may unblock a pod that these plugins refused."""
        ...
