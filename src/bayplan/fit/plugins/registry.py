"""All plugins, in kube-scheduler's order, and what they say together.

A plugin that has nothing to say of a pod is not there for it: its compile function gives None.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from operator import attrgetter
from types import MappingProxyType

from bayplan.fit.plugin_set import MOST_WEIGHT, PluginSet
from bayplan.fit.plugins import (
    dynamic_resources,
    image_locality,
    node_declared_features,
    node_name,
    node_ports,
    node_resources_balanced_allocation,
    node_unschedulable,
    taint_toleration,
    volume_restrictions,
    volume_zone,
)
from bayplan.fit.plugins.base import Arrival, Filter, Question
from bayplan.fit.plugins.inter_pod_affinity import plugin as inter_pod_affinity
from bayplan.fit.plugins.node_affinity import plugin as node_affinity
from bayplan.fit.plugins.node_resources_fit import plugin as node_resources_fit
from bayplan.fit.plugins.node_volume_limits import plugin as node_volume_limits
from bayplan.fit.plugins.plugin import Cause, Plugin
from bayplan.fit.plugins.pod_topology_spread import plugin as pod_topology_spread
from bayplan.fit.plugins.scores import Score
from bayplan.fit.plugins.trial import UNEXPLAINED, Explaining
from bayplan.fit.plugins.volume_binding import plugin as volume_binding
from bayplan.fit.refusal import Refusal
from bayplan.fit.signatures.plugin_reads import PluginReads
from bayplan.kube.nodes import Node
from bayplan.kube.pods import Pod

PLUGINS: tuple[Plugin, ...] = (
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
BY_NAME: Mapping[str, Plugin] = MappingProxyType({one.name: one for one in PLUGINS})
FILTERS = frozenset(one.name for one in PLUGINS if one.filters and one.optional and one.default)
"""The filters of the default profile."""
SCORES = tuple((one.name, one.weight) for one in PLUGINS if one.score)
"""Names and weights of the scores of the default profile."""
_BY_ANY_NAME = {name: one for one in PLUGINS for name in (one.name, *one.other_names)}
_EXPLAINING = {one.name: one.explaining for one in PLUGINS} | {
    name: explaining for one in PLUGINS for name, explaining in one.other_names.items()
}
CAPACITIES = tuple(one.capacity for one in PLUGINS if one.capacity is not None)
"""What a node has room for, part by part."""
_NODE_FIELDS = tuple(
    attrgetter(field) for field in sorted({field for one in PLUGINS for field in one.node_fields})
)
_PINNING = tuple(one for one in PLUGINS if one.pins is not None)


def is_same_node(before: Node, after: Node) -> bool:
    """Whether two states of a node are the same to all plugins."""
    return all(field(before) == field(after) for field in _NODE_FIELDS)


PLUGIN_READS = PluginReads(
    is_same_node, {one.name: one.signs for one in PLUGINS if one.signs is not None}
)


def refusal_before_nodes(arrival: Arrival) -> Refusal | None:
    """The first refusal of a pod whatever node it is; None if nodes are to be asked."""
    asked = _asked(arrival.plugins)
    refusing = (*(one.pre_enqueue for one in asked), *(one.pre_filter for one in asked))
    refusals = (refuse(arrival) for refuse in refusing if refuse is not None)
    return next((one for one in refusals if one is not None), None)


def compile_filters(question: Question) -> tuple[Filter, ...]:
    """The filters that have something to say of a pod, in the order in which they are asked."""
    asked = _asked(question.plugins)
    narrowing = [one.narrow for one in asked if one.narrow is not None]
    filtering = [compile_filter for one in asked for compile_filter in one.filters]
    compiled = (compile_filter(question) for compile_filter in (*narrowing, *filtering))
    return tuple(one for one in compiled if one is not None)


def compile_scores(question: Question) -> tuple[Score, ...]:
    """The scores that have something to say of a pod."""
    chosen = question.plugins.scores
    weights = dict(SCORES if chosen is None else chosen)
    found = []
    for plugin in PLUGINS:
        weight = weights.get(plugin.name, 0)
        score = plugin.score(question) if plugin.score is not None and weight else None
        if score is not None:
            score.weight = min(weight, MOST_WEIGHT)
            found.append(score)
    return tuple(found)


def pinned_by(question: Question) -> str:
    """The plugin that keeps a pod off all nodes but the one that it names besides; empty if more
    than that would be another.
    """
    return next((one.name for one in _PINNING if one.pins and one.pins(question)), "")


def cause_of_plugin(name: str) -> Cause:
    """What a pod waits for that is refused by a plugin, or by a name that one refuses under."""
    found = _BY_ANY_NAME.get(name)
    return found.cause if found is not None else Cause.OTHER


def explaining(name: str) -> Explaining:
    """How refusals by a plugin are explained."""
    return _EXPLAINING.get(name, UNEXPLAINED)


def node_labels_read(pod: Pod) -> frozenset[str]:
    """The labels of nodes that plugins read of a pod's own rules."""
    return frozenset[str]().union(*(one.node_labels(pod) for one in PLUGINS if one.node_labels))


def names_drivers(name: str) -> bool:
    """Whether a plugin says over volumes of which drivers it refuses."""
    return name in BY_NAME and BY_NAME[name].names_drivers


def refuses_for_good(name: str) -> bool:
    """Whether what a plugin refuses on a node with nothing on it, it refuses for good."""
    return name in BY_NAME and BY_NAME[name].for_good


def deallocates_claims(name: str) -> bool:
    """Whether a plugin takes back claims for a pod that fits nowhere."""
    return name in BY_NAME and BY_NAME[name].deallocates_claims


def may_be_unsure(names: Collection[str]) -> bool:
    """Whether one of these plugins may have refused only since it cannot judge."""
    return any(name in BY_NAME and not BY_NAME[name].judges_all for name in names)


def has_all_filters(plugins: PluginSet) -> bool:
    """Whether a set has every filter of the default profile."""
    return plugins.filters is None or plugins.filters >= FILTERS


def _asked(plugins: PluginSet) -> list[Plugin]:
    chosen = FILTERS if plugins.filters is None else plugins.filters
    return [one for one in PLUGINS if not one.optional or one.name in chosen]
