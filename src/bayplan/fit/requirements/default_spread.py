"""Default topology spreading: how pods of a service or controller are spread that do not say.

Kubernetes' own is a preference: over hosts with skew 3 and over zones with skew 5, and a node need
not have both labels. A profile may have other constraints, which are taken like a pod's own.
"""

from __future__ import annotations

from dataclasses import dataclass

from bayplan.fit.plugin_set import DefaultConstraint, PluginSet
from bayplan.fit.signatures.signature import PodSignature
from bayplan.fit.signatures.terms import SpreadConstraint
from bayplan.fit.state.cluster import Cluster
from bayplan.kube.labels import HOSTNAME, ZONE
from bayplan.kube.selectors import Selector

SYSTEM = (DefaultConstraint(3, HOSTNAME), DefaultConstraint(5, ZONE))


@dataclass(frozen=True, slots=True)
class DefaultSpread:
    """The constraints of a pod that has none of its own."""

    hard: tuple[SpreadConstraint, ...] = ()
    soft: tuple[SpreadConstraint, ...] = ()
    need_labels: bool = False
    """Whether only nodes count that have every label the constraints speak of."""


NO_DEFAULTS = DefaultSpread()


def default_spread(signature: PodSignature, cluster: Cluster, plugins: PluginSet) -> DefaultSpread:
    """The constraints of a pod that has none; none if no service or controller is behind it."""
    said = plugins.default_constraints
    if signature.has_spread or said == ():
        return NO_DEFAULTS
    selector = cluster.workloads.selector_for(signature)
    if selector.matches_everything:
        return NO_DEFAULTS
    constraints = SYSTEM if said is None else said
    return DefaultSpread(
        hard=tuple(_constraint(one, selector) for one in constraints if one.must_hold),
        soft=tuple(_constraint(one, selector) for one in constraints if not one.must_hold),
        need_labels=said is not None,
    )


def _constraint(constraint: DefaultConstraint, selector: Selector) -> SpreadConstraint:
    return SpreadConstraint(
        max_skew=constraint.max_skew,
        topology_key=constraint.topology_key,
        selector=selector,
        min_domains=constraint.min_domains,
        honor_affinity=constraint.honor_affinity,
        honor_taints=constraint.honor_taints,
    )
