"""Default topology spreading: over hosts with skew 3 and over zones with skew 5, as a
preference.
"""

from __future__ import annotations

from bayplan.fit.shapes.shape import Shape
from bayplan.fit.shapes.terms import SpreadConstraint
from bayplan.fit.state.cluster import Cluster
from bayplan.kube.labels import HOSTNAME, ZONE

DEFAULT_SKEWS = {HOSTNAME: 3, ZONE: 5}


def default_spread(shape: Shape, cluster: Cluster) -> tuple[SpreadConstraint, ...]:
    """The constraints of a pod that has none; none if no service or controller is behind it."""
    if shape.has_spread:
        return ()
    selector = cluster.workloads.selector_for(shape)
    if selector.matches_everything:
        return ()
    return tuple(
        SpreadConstraint(
            max_skew=skew,
            topology_key=key,
            selector=selector,
            min_domains=1,
            honor_affinity=True,
            honor_taints=False,
        )
        for key, skew in DEFAULT_SKEWS.items()
    )
