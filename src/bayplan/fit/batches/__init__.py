"""Many pods at once: grouped by equivalence, filled into nodes, and onto new nodes of a
template.
"""

from __future__ import annotations

from bayplan.fit.batches.attempt import new_names
from bayplan.fit.batches.estimate import Estimate, estimate
from bayplan.fit.batches.fill import FillResult, fill
from bayplan.fit.batches.groups import PodEquivalenceGroup, group_pods
from bayplan.fit.batches.options import Option, fill_all, options
from bayplan.fit.batches.template import NodeTemplate, add_node, daemons_for, ephemeral_claims

__all__ = [
    "Estimate",
    "FillResult",
    "NodeTemplate",
    "Option",
    "PodEquivalenceGroup",
    "add_node",
    "daemons_for",
    "ephemeral_claims",
    "estimate",
    "fill",
    "fill_all",
    "group_pods",
    "new_names",
    "options",
]
