"""Many pods at once: grouped by likeness, filled into nodes, and onto new nodes of a template."""

from __future__ import annotations

from bayplan.fit.batches.attempt import new_names
from bayplan.fit.batches.estimate import Estimate, estimate
from bayplan.fit.batches.fill import Filled, fill
from bayplan.fit.batches.groups import Group, group_pods
from bayplan.fit.batches.options import Option, fill_all, options
from bayplan.fit.batches.template import Template, add_node, daemons_for, ephemeral_claims

__all__ = [
    "Estimate",
    "Filled",
    "Group",
    "Option",
    "Template",
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
