"""How much of what a plugin counts a node has, and what pods take of it.

Whoever packs many pods onto many nodes asks this instead of placing them one by one. Only what one
node has matters: amounts that add up, things that pods share (which count once on a node), and pods
that keep each other off. What compares nodes is no question of capacity.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from bayplan.fit.requirements.pods import PodRequirements
from bayplan.fit.signatures.signature import PodSignature
from bayplan.fit.signatures.terms import Namespaces
from bayplan.fit.state.cluster import Cluster
from bayplan.fit.state.columns import IntArray
from bayplan.fit.volumes.identity import VolumeIdentity
from bayplan.kube.meta import Labels

PLENTY = 1 << 40
"""Room for any number."""


class AlikePods(Protocol):
    """Pods of which each takes the same."""

    @property
    def signature(self) -> PodSignature:
        """What scheduling looks at."""

    @property
    def requirements(self) -> PodRequirements | None:
        """What they need of storage; None if they are refused before any node is looked at."""

    @property
    def own_volumes(self) -> tuple[tuple[VolumeIdentity, int], ...]:
        """By driver and plugin (of an example), how many volumes each pod has for itself."""

    @property
    def shared_volumes(self) -> tuple[VolumeIdentity, ...]:
        """The volumes that each pod uses, and others as well."""

    @property
    def labels(self) -> Labels:
        """The labels of one of them; no selector that matters tells another apart."""


Room = Callable[[Cluster, AlikePods], IntArray | int | None]
"""By slot, how many more of these pods would find what they need; None is any number."""


@dataclass(frozen=True, slots=True)
class Take:
    """What one pod takes of a node."""

    amounts: Mapping[int, int] = field(default_factory=dict)
    """By axis, how much."""
    shared: Mapping[str, int] = field(default_factory=dict)
    """What it shares with others, and the axis of which that takes one on a node."""


@dataclass(frozen=True, slots=True)
class NodeCapacity:
    """What a node has left, on a plugin's own axes."""

    free: Sequence[int]
    take: Callable[[AlikePods], Take]
    present: frozenset[str] = frozenset()
    """What pods could share and what is on the node already."""


Measure = Callable[[Cluster, str, Sequence[AlikePods]], NodeCapacity]
"""What a node of this name has left of all that some pods take."""


@dataclass(frozen=True, slots=True)
class OneNode:
    """What there is to know of two pods on one node."""

    labels: frozenset[str]
    """The labels whose domains are one node each."""
    namespaces: Namespaces


@dataclass(frozen=True, slots=True, kw_only=True)
class Exclusion:
    """Pods that keep others off their node."""

    may: Callable[[AlikePods, OneNode], bool]
    """Whether such pods keep anybody off, or are kept off by others that may."""
    keeps_off: Callable[[AlikePods, AlikePods, OneNode], bool]
    """Whether the first, on a node, keep the second off it."""
    of_any: bool = False
    """Whether those that may also keep off others that may not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacity:
    """A plugin's part of what a node has room for."""

    room: Room | None = None
    measure: Measure | None = None
    exclusion: Exclusion | None = None
