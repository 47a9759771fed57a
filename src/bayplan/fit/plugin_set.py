"""A set of plugins: which filters are asked, what scores weigh, and what each plugin is told.

The default is kube-scheduler's default profile. A set is a value, so that several can be asked of
one snapshot, and answers that stand for one are never taken for another's. The words are those of
KubeSchedulerConfiguration.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from bayplan.fit.rules import VolumeRules
from bayplan.kube.pods import NodeAffinity, TopologySpreadConstraint
from bayplan.kube.resources import CPU, MEMORY
from bayplan.kube.selectors import (
    NodeSelectorMatcher,
    NodeTermMatcher,
    compile_node_selector,
    compile_node_term,
)

MOST_WEIGHT = 10_000
"""A larger weight counts as this: the sum of all scores must fit into a rank."""


class Strategy(Enum):
    """How NodeResourcesFit scores what is requested of a node."""

    LEAST_ALLOCATED = "LeastAllocated"
    MOST_ALLOCATED = "MostAllocated"
    REQUESTED_TO_CAPACITY_RATIO = "RequestedToCapacityRatio"


@dataclass(frozen=True, slots=True)
class ScoringStrategy:
    """NodeResourcesFitArgs.scoringStrategy."""

    type: Strategy = Strategy.LEAST_ALLOCATED
    resources: tuple[tuple[str, int], ...] = ((CPU, 1), (MEMORY, 1))
    """Names and weights."""
    shape: tuple[tuple[int, int], ...] = ()
    """Points of utilization (0 to 100) and score (0 to 10), for RequestedToCapacityRatio."""


@dataclass(frozen=True, slots=True)
class DefaultConstraint:
    """How pods without constraints of their own are spread; their selector is worked out."""

    max_skew: int
    topology_key: str
    must_hold: bool = False
    min_domains: int = 1
    honor_affinity: bool = True
    honor_taints: bool = False

    @classmethod
    def of(cls, constraint: TopologySpreadConstraint) -> DefaultConstraint:
        """As PodTopologySpreadArgs.defaultConstraints has it."""
        return cls(
            max_skew=constraint.max_skew,
            topology_key=constraint.topology_key,
            must_hold=constraint.when_unsatisfiable == "DoNotSchedule",
            min_domains=constraint.min_domains or 1,
            honor_affinity=constraint.node_affinity_policy == "Honor",
            honor_taints=constraint.node_taints_policy == "Honor",
        )


@dataclass(frozen=True, slots=True)
class AddedAffinity:
    """NodeAffinityArgs.addedAffinity: what every pod is taken to ask of its node besides."""

    required: NodeSelectorMatcher | None = None
    preferred: tuple[tuple[int, NodeTermMatcher], ...] = ()

    @classmethod
    def of(cls, affinity: NodeAffinity | None) -> AddedAffinity:
        """An affinity as written, ready to match."""
        if affinity is None:
            return cls()
        return cls(
            required=compile_node_selector(affinity.required) if affinity.required else None,
            preferred=tuple(
                (one.weight, compile_node_term(one.preference))
                for one in affinity.preferred
                if one.weight
            ),
        )


@dataclass(frozen=True, slots=True)
class PluginSet:
    """What pods are filtered and scored by."""

    filters: frozenset[str] | None = None
    """The names of those that are asked; None is those of the default profile."""
    scores: tuple[tuple[str, int], ...] | None = None
    """Names and weights of the scores that count; None is those of the default profile."""
    scoring: ScoringStrategy = field(default_factory=ScoringStrategy)
    balanced_resources: tuple[str, ...] = (CPU, MEMORY)
    ignored_resources: frozenset[str] = frozenset()
    """Extended resources that are not filtered by."""
    ignored_resource_groups: frozenset[str] = frozenset()
    """The same for all whose name starts with one of these and a slash."""
    hard_pod_affinity_weight: int = 1
    ignore_preferred_terms_of_existing_pods: bool = False
    default_constraints: tuple[DefaultConstraint, ...] | None = None
    """None is Kubernetes' own (`defaultingType: System`); empty is none at all."""
    added_affinity: AddedAffinity = field(default_factory=AddedAffinity)
    volume_rules: VolumeRules | None = None
    """None is the profile's."""
    deallocates_claims: bool = False
    """Whether messages have the words of kube-scheduler's plugin for dynamic resources, which looks
    for claims to take back before others are preempted.
    """

    def asks(self, filter_name: str) -> bool:
        """Whether a filter is asked."""
        return self.filters is None or filter_name in self.filters


DEFAULT_PLUGINS = PluginSet()
