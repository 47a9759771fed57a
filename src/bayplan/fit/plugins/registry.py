"""All plugins, in kube-scheduler's order, and what they give together.

A plugin that cannot refuse or score a pod is left out for it: its compile function returns None.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from operator import attrgetter
from types import MappingProxyType

from bayplan.fit.decision import Refusal
from bayplan.fit.plugins import (
    dynamic_resources,
    image_locality,
    inter_pod_affinity,
    node_affinity,
    node_declared_features,
    node_name,
    node_ports,
    node_resources_balanced_allocation,
    node_resources_fit,
    node_unschedulable,
    node_volume_limits,
    pod_topology_spread,
    taint_toleration,
    volume_binding,
    volume_restrictions,
    volume_zone,
)
from bayplan.fit.plugins.base import EvaluationRequest, Filter, PreFilterInput, Score
from bayplan.fit.plugins.explanation import NO_EXPLAINER, Explainer, NodeChange
from bayplan.fit.plugins.plugin import Cause, SchedulerPlugin
from bayplan.fit.profile import MOST_WEIGHT, PluginSet
from bayplan.fit.requirements.pods import PodRequirements
from bayplan.fit.signatures.reads import PluginReads
from bayplan.fit.state.cluster import ClusterState
from bayplan.kube.nodes import Node
from bayplan.kube.pods import Pod

PLUGINS: tuple[SchedulerPlugin, ...] = (
    node_unschedulable.PLUGIN,
    node_name.PLUGIN,
    taint_toleration.PLUGIN,
    node_affinity.PLUGIN,
    node_ports.PLUGIN,
    node_resources_fit.PLUGIN,
    volume_restrictions.PLUGIN,
    node_volume_limits.PLUGIN,
    volume_binding.PLUGIN,
    volume_zone.PLUGIN,
    pod_topology_spread.PLUGIN,
    inter_pod_affinity.PLUGIN,
    dynamic_resources.PLUGIN,
    node_declared_features.PLUGIN,
    node_resources_balanced_allocation.PLUGIN,
    image_locality.PLUGIN,
)
BY_NAME: Mapping[str, SchedulerPlugin] = MappingProxyType({one.name: one for one in PLUGINS})
FILTERS = frozenset(one.name for one in PLUGINS if one.filters and one.optional and one.default)
"""The filters of the default profile."""
SCORES = tuple((one.name, one.weight) for one in PLUGINS if one.score)
"""Names and weights of the scores of the default profile."""
_BY_ANY_NAME = {name: one for one in PLUGINS for name in (one.name, *one.other_names)}
_EXPLAINERS = {one.name: one.explainer for one in PLUGINS} | {
    name: explainer_of for one in PLUGINS for name, explainer_of in one.other_names.items()
}
CAPACITIES = tuple(one.capacity for one in PLUGINS if one.capacity is not None)
"""The capacity of nodes, plugin by plugin."""
_NODE_FIELDS = tuple(
    attrgetter(field) for field in sorted({field for one in PLUGINS for field in one.node_fields})
)
_PINNING = tuple(one for one in PLUGINS if one.can_pin is not None)


def is_same_node(before: Node, after: Node) -> bool:
    """Whether two states of a node are the same to all plugins."""
    return all(field(before) == field(after) for field in _NODE_FIELDS)


PLUGIN_READS = PluginReads(
    is_same_node,
    pod_fields=attrgetter(*{field for one in PLUGINS for field in one.pod_fields}),
    by_plugin={one.name: one.sign for one in PLUGINS if one.sign is not None},
)


def refusal_before_nodes(arrival: PreFilterInput) -> Refusal | None:
    """Return the first refusal of a pod whatever node it is; None if nodes are to be evaluated."""
    asked = _asked(arrival.plugins)
    refusing = (*(one.pre_enqueue for one in asked), *(one.pre_filter for one in asked))
    refusals = (refuse(arrival) for refuse in refusing if refuse is not None)
    return next((one for one in refusals if one is not None), None)


def compile_filters(request: EvaluationRequest) -> tuple[Filter, ...]:
    """Compile the filters of a request, in the order in which they run."""
    asked = _asked(request.plugins)
    narrowing = [one.pre_filter_result for one in asked if one.pre_filter_result is not None]
    filtering = [compile_filter for one in asked for compile_filter in one.filters]
    compiled = (compile_filter(request) for compile_filter in (*narrowing, *filtering))
    return tuple(one for one in compiled if one is not None)


def compile_scores(request: EvaluationRequest) -> tuple[Score, ...]:
    """Compile the scores of a request."""
    chosen = request.plugins.scores
    weights = dict(SCORES if chosen is None else chosen)
    found = []
    for plugin in PLUGINS:
        weight = weights.get(plugin.name, 0)
        score = plugin.score(request) if plugin.score is not None and weight else None
        if score is not None:
            score.weight = min(weight, MOST_WEIGHT)
            found.append(score)
    return tuple(found)


def pinning_plugin(request: EvaluationRequest) -> str:
    """Return the plugin that alone keeps a pod off all nodes but the one that it names; empty if
    other plugins take part.
    """
    return next((one.name for one in _PINNING if one.can_pin and one.can_pin(request)), "")


def cause_of_plugin(name: str) -> Cause:
    """Return the cause of a pod that is refused by a plugin, by any name in its refusals."""
    found = _BY_ANY_NAME.get(name)
    return found.cause if found is not None else Cause.OTHER


def explainer_of(name: str) -> Explainer:
    """Return how refusals of a plugin are explained."""
    return _EXPLAINERS.get(name, NO_EXPLAINER)


def node_labels_read(pod: Pod, cluster: ClusterState) -> frozenset[str]:
    """The labels of nodes that plugins read by a pod's own rules and volumes."""
    found = (one.node_labels(pod, cluster) for one in PLUGINS if one.node_labels)
    return frozenset[str]().union(*found)


def node_changes() -> list[NodeChange]:
    """The ways to change a copy of a node so that a pod may fit there, the cheapest first."""
    changes = dict.fromkeys(one.explainer.new_node for one in PLUGINS)
    return sorted((one for one in changes if one is not None), key=lambda one: one.cost)


def names_drivers(name: str) -> bool:
    """Whether a plugin names the CSI drivers because of which it refuses."""
    return name in BY_NAME and BY_NAME[name].names_drivers


def refuses_for_good(name: str) -> bool:
    """Whether what a plugin refuses on an empty node, it always refuses there."""
    return name in BY_NAME and BY_NAME[name].refuses_for_good


def post_filter_messages(requirements: PodRequirements) -> list[str]:
    """What plugins report of a pod that fits nowhere, before preemption is tried."""
    return [one.post_filter.message(requirements) for one in PLUGINS if one.post_filter]


def message_without_state(refusing: str) -> str:
    """Return the PostFilter message of a plugin that did not run, since another refused the pod
    before any node was evaluated; empty if there is none.
    """
    others = (one.post_filter for one in PLUGINS if one.post_filter and one.name != refusing)
    return next((one.message_without_state for one in others), "")


def may_be_unjudged(names: Collection[str]) -> bool:
    """Whether one of these plugins may have refused because it cannot judge."""
    return any(name in BY_NAME and not BY_NAME[name].can_judge_all for name in names)


def has_other_rules(request: EvaluationRequest) -> bool:
    """Whether more than capacities and signature decides about pods, or a filter of the default
    profile is left out.
    """
    plugins = request.plugins
    if plugins.filters is not None and not plugins.filters >= FILTERS:
        return True
    return any(one.has_other_rules(request) for one in PLUGINS if one.has_other_rules)


def bind_timeout(plugins: PluginSet) -> float:
    """How long plugins may take to prepare what a pod is bound with, in seconds."""
    return max(one.bind_timeout(plugins) for one in PLUGINS if one.bind_timeout)


def _asked(plugins: PluginSet) -> list[SchedulerPlugin]:
    chosen = FILTERS if plugins.filters is None else plugins.filters
    return [one for one in PLUGINS if not one.optional or one.name in chosen]
