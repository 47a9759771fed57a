"""Nodes that groups lack to their minimum size, within the limits of the cluster."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from bayplan.autoscaler.clusterview import ClusterView
from bayplan.autoscaler.estimate.limits import scale_up_limits
from bayplan.autoscaler.estimate.options import NewNodes
from bayplan.autoscaler.estimate.upcoming_nodes import add_upcoming, apply_new_nodes


def missing_to_minimum(cluster_view: ClusterView, planned: Sequence[NewNodes]) -> list[NewNodes]:
    """Return the nodes that groups lack to their minimum size, after a planned scale-up.

    Groups come by name; each gets as many nodes as the cluster may still add.
    """
    view = _after(cluster_view, planned)
    lacking = [name for name, one in sorted(view.groups.items()) if one.target < one.group.min_size]
    if not lacking:
        return []
    found: list[NewNodes] = []
    with view.snapshot.fork():
        add_upcoming(view)
        apply_new_nodes(view.snapshot, planned)
        for name in lacking:
            group, limits = view.groups[name], scale_up_limits(view)
            count = min(group.group.min_size - group.target, limits.max_nodes.get(name, 0))
            if count:
                found.append(NewNodes(cluster_view.groups[name], count, ((),) * count))
                apply_new_nodes(view.snapshot, found[-1:])
    return found


def _after(cluster_view: ClusterView, planned: Sequence[NewNodes]) -> ClusterView:
    """Return the view with the target sizes that groups have after a scale-up."""
    added: Counter[str] = Counter()
    for one in planned:
        added[one.view.id] += one.nodes
    groups = {
        name: replace(view, target=view.target + added[name])
        for name, view in cluster_view.groups.items()
    }
    return replace(cluster_view, groups=groups)
