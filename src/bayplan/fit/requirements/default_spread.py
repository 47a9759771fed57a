"""Default topology spreading: for pods of a service or controller without constraints.

Kubernetes' own is a preference: over hosts with skew 3 and over zones with skew 5, and a node need
not have both labels. A profile may have other constraints, which are taken like a pod's own.
"""

from __future__ import annotations

from dataclasses import dataclass

from bayplan.fit.profile import PluginSet
from bayplan.fit.signatures.signature import PodSignature
from bayplan.fit.signatures.terms import SpreadConstraint
from bayplan.fit.state.cluster import ClusterState
from bayplan.kube.labels import HOSTNAME, ZONE
from bayplan.kube.selectors import Selector


@dataclass(frozen=True, slots=True)
class SpreadDefault:
    """A default constraint; its selector is deduced for each pod."""

    max_skew: int
    topology_key: str
    must_hold: bool = False
    min_domains: int = 1
    honor_affinity: bool = True
    honor_taints: bool = False


@dataclass(frozen=True, slots=True)
class SpreadDefaults:
    """The default constraints of a set of plugins."""

    constraints: tuple[SpreadDefault, ...] | None = None
    """None is Kubernetes' own (`defaultingType: System`); empty is none at all."""


SYSTEM = (SpreadDefault(3, HOSTNAME), SpreadDefault(5, ZONE))


@dataclass(frozen=True, slots=True)
class DefaultSpread:
    """The constraints of a pod that has none of its own."""

    hard: tuple[SpreadConstraint, ...] = ()
    soft: tuple[SpreadConstraint, ...] = ()
    need_labels: bool = False
    """Whether only nodes count that have every label the constraints speak of."""


NO_DEFAULTS = DefaultSpread()


def default_spread(
    signature: PodSignature, cluster: ClusterState, plugins: PluginSet
) -> DefaultSpread:
    """The constraints of a pod that has none; none if no service or controller is behind it."""
    configured = plugins.args_of(SpreadDefaults).constraints
    if signature.has_spread or configured == ():
        return NO_DEFAULTS
    selector = cluster.workloads.selector_for(signature)
    if selector.matches_everything:
        return NO_DEFAULTS
    constraints = SYSTEM if configured is None else configured
    return DefaultSpread(
        hard=tuple(_constraint(one, selector) for one in constraints if one.must_hold),
        soft=tuple(_constraint(one, selector) for one in constraints if not one.must_hold),
        need_labels=configured is not None,
    )


def _constraint(constraint: SpreadDefault, selector: Selector) -> SpreadConstraint:
    return SpreadConstraint(
        max_skew=constraint.max_skew,
        topology_key=constraint.topology_key,
        selector=selector,
        min_domains=constraint.min_domains,
        honor_affinity=constraint.honor_affinity,
        honor_taints=constraint.honor_taints,
    )
