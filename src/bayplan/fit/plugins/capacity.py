"""How much capacity a node has of what a plugin counts, and what pods use of it.

Packing many pods onto many nodes uses this instead of placing them one by one. Only one node at a
time matters: amounts that add up, volumes that pods share (which count once on a node), and pods
that exclude each other. What compares nodes is not a matter of capacity.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from bayplan.fit.requirements.pods import PodRequirements
from bayplan.fit.signatures.signature import PodSignature
from bayplan.fit.signatures.terms import Namespaces
from bayplan.fit.state.cluster import ClusterState
from bayplan.fit.state.columns import IntArray
from bayplan.fit.volumes.identity import VolumeIdentity
from bayplan.kube.meta import Labels

UNLIMITED = 1 << 40
"""Capacity for any number of pods."""


class EquivalenceClass(Protocol):
    """Pods of which each uses the same."""

    @property
    def signature(self) -> PodSignature:
        """What scheduling reads of them."""

    @property
    def requirements(self) -> PodRequirements | None:
        """Their storage requirements; None if they are refused before any node is evaluated."""

    @property
    def own_volumes(self) -> tuple[tuple[VolumeIdentity, int], ...]:
        """By an example of the driver and plugin, how many volumes each pod has for itself."""

    @property
    def shared_volumes(self) -> tuple[VolumeIdentity, ...]:
        """The volumes that each pod uses, and others as well."""

    @property
    def labels(self) -> Labels:
        """The labels of one of them; no selector that counts distinguishes another."""


FreeCapacity = Callable[[ClusterState, EquivalenceClass], IntArray | int | None]
"""By slot, how many more of these pods would fit; None is any number."""


@dataclass(frozen=True, slots=True)
class PodUsage:
    """What one pod uses of a node."""

    amounts: Mapping[int, int] = field(default_factory=dict)
    """By axis, how much."""
    shared: Mapping[str, int] = field(default_factory=dict)
    """What it shares with other pods, and the axis of which that takes one on a node."""


@dataclass(frozen=True, slots=True)
class NodeCapacity:
    """What a node has left, on a plugin's own axes."""

    free: Sequence[int]
    usage_of: Callable[[EquivalenceClass], PodUsage]
    present: frozenset[str] = frozenset()
    """What pods could share and is on the node already."""


Measure = Callable[[ClusterState, str, Sequence[EquivalenceClass]], NodeCapacity]
"""What a node of this name has left of all that some pods use."""


@dataclass(frozen=True, slots=True)
class HostTopology:
    """What decides whether two pods can be on one node."""

    labels: frozenset[str]
    """The labels whose domains are one node each."""
    namespaces: Namespaces


@dataclass(frozen=True, slots=True, kw_only=True)
class Exclusion:
    """Pods that exclude others from their node."""

    may_exclude: Callable[[EquivalenceClass, HostTopology], bool]
    """Whether such pods may exclude others, or be excluded by others that may."""
    excludes: Callable[[EquivalenceClass, EquivalenceClass, HostTopology], bool]
    """Whether the first, on a node, exclude the second from it."""
    excludes_any: bool = False
    """Whether those that may exclude also exclude others that may not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacity:
    """A plugin's part of the capacity of a node."""

    free_capacity: FreeCapacity | None = None
    measure: Measure | None = None
    exclusion: Exclusion | None = None
