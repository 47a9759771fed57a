"""What plugins read of objects, as the state beneath them is told.

A change of a node that no plugin reads changes no answer; and pods of which plugins read the same
are one signature.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from bayplan.kube.nodes import Node
from bayplan.kube.pods import Pod

Signed = tuple[Hashable, ...]
NOTHING: Mapping[str, Signed] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class PluginReads:
    """What plugins read."""

    is_same_node: Callable[[Node, Node], bool]
    """Whether two states of a node are the same to all plugins."""
    signs: Mapping[str, Callable[[Pod], Signed]]
    """By plugin, what it reads of a pod beyond what every signature has."""

    def sign(self, pod: Pod) -> Mapping[str, Signed]:
        """What plugins read of a pod, by plugin; only where that is something."""
        found: Mapping[str, Signed] = NOTHING
        for name, sign in self.signs.items():  # asked at every decision
            said = sign(pod)
            if said:
                found = {**found, name: said}
        return found
