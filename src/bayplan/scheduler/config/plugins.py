"""Which plugins a profile has at each extension point, worked out as kube-scheduler does.

The defaults stand at `multiPoint`. A profile's own choices there replace or remove them; a choice
at a single point overrides `multiPoint` for that point. Every plugin is one piece here,
so one that is on at some of its points and off at others, where kube-scheduler would fail at run
time or bind by halves, is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from bayplan.base.configfiles import FieldProblem
from bayplan.fit import preemption
from bayplan.fit.plugins import registry
from bayplan.fit.plugins.plugin import BINDING, FILTERING, SCORING
from bayplan.fit.plugins.plugin import SchedulerPlugin as PluginRecord
from bayplan.scheduler.config.wire import Plugin, PluginChoice, Plugins

RECORDS: Mapping[str, PluginRecord] = MappingProxyType(
    {one.name: one for one in (*registry.PLUGINS, preemption.PLUGIN) if one.optional}
)
"""The plugins of the model that a profile may name, in the order of the defaults."""
_POINTS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "SchedulingGates": ("pre_enqueue",),
        "PrioritySort": ("queue_sort",),
        **{one.name: one.points for one in RECORDS.values()},
        "DefaultBinder": ("bind",),
    }
)
"""The extension points of each plugin: the model's, in the order of the defaults, and what a
scheduler does by itself.
"""
PLUGINS = tuple(_POINTS)
_DEFAULTS = tuple(
    name for name in PLUGINS if name not in registry.BY_NAME or registry.BY_NAME[name].default
)
"""Return the plugins of a profile that configures none."""
_WEIGHTS = dict(registry.SCORES)
_ELSEWHERE = frozenset(
    {
        "DeferredPodScheduling",
        "GangScheduling",
        "PodGroupPodsCount",
        "TopologyPlacementGenerator",
        *(one.name for one in registry.PLUGINS if not one.optional),
    }
)
"""What kube-scheduler has and we have not, or cannot do without; switching it off changes
nothing.
"""
_REMOVED = frozenset({"AzureDiskLimits", "CinderLimits", "EBSLimits", "GCEPDLimits"})
_INDISPENSABLE = {
    "queue_sort": ("PrioritySort", "pods are always ordered by priority, then by age"),
    "pre_enqueue": ("SchedulingGates", "a gated pod cannot be bound by anyone"),
    "bind": ("DefaultBinder", "nothing else here binds pods"),
}
_ALL = "*"


@dataclass(frozen=True, slots=True)
class Chosen:
    """The plugins of a profile."""

    filters: frozenset[str]
    scores: Mapping[str, int]
    preempts: bool


def choose(plugins: Plugins | None, field: str) -> Chosen:
    """Return the enabled plugins of a profile; FieldProblem if its choices are invalid."""
    choices = plugins or Plugins()
    for point in Plugins.__struct_fields__:
        _check_names(point, getattr(choices, point), f"{field}.{_camel(point)}")
    spread = _multi_point(choices.multi_point)
    on = {point: _at(point, spread, choices) for point in Plugins.__struct_fields__[1:]}
    for point, (name, why) in _INDISPENSABLE.items():
        if list(on[point]) != [name]:
            raise FieldProblem(f"{field}.{_camel(point)}", f"{name} cannot be replaced: {why}")
    for name in PLUGINS:
        _check_whole(name, on, field)
    scores = {name: weight or 1 for name, weight in on["score"].items()}
    return Chosen(frozenset(on["filter"]), MappingProxyType(scores), bool(on["post_filter"]))


def check_known(name: str, field: str) -> None:
    """FieldProblem unless it is a plugin that we have."""
    if name in _REMOVED:
        raise FieldProblem(field, f"{name} was removed from kube-scheduler")
    if name in _ELSEWHERE:
        raise FieldProblem(field, f"{name} is a plugin of kube-scheduler that Bayplan has not")
    if name not in _POINTS:
        raise FieldProblem(field, f"there is no plugin {name[:80]!r}; known are {_listed(PLUGINS)}")


def _check_names(point: str, choice: PluginChoice, field: str) -> None:
    seen: set[str] = set()
    for index, plugin in enumerate(choice.enabled):
        place = f"{field}.enabled[{index}]"
        check_known(plugin.name, f"{place}.name")
        if plugin.name in seen:
            raise FieldProblem(place, f"{plugin.name} is there twice")
        if point != "multi_point" and point not in _POINTS[plugin.name]:
            raise FieldProblem(place, f"{plugin.name} has nothing to do at {_camel(point)}")
        if plugin.weight is not None and plugin.weight < 0:
            raise FieldProblem(f"{place}.weight", "must not be negative")
        seen.add(plugin.name)
    for index, plugin in enumerate(choice.disabled):
        if plugin.name != _ALL and plugin.name not in _ELSEWHERE | _REMOVED:
            check_known(plugin.name, f"{field}.disabled[{index}].name")


def _multi_point(choice: PluginChoice) -> dict[str, int]:
    """Return the multiPoint plugins with weights (0 is unset): kept defaults, then new ones."""
    own = {plugin.name: plugin.weight or 0 for plugin in choice.enabled}
    off = _names(choice.disabled)
    kept: Iterable[str] = () if _ALL in off else (name for name in _DEFAULTS if name not in off)
    merged = {name: own.get(name, _WEIGHTS.get(name, 1)) for name in kept}
    return merged | {name: weight for name, weight in own.items() if name not in merged}


def _at(point: str, spread: Mapping[str, int], choices: Plugins) -> dict[str, int]:
    """Return the plugins of one extension point, with weights."""
    choice: PluginChoice = getattr(choices, point)
    off = _names(choice.disabled)
    own = {plugin.name: plugin.weight or 0 for plugin in choice.enabled}
    if _ALL in off:
        return own
    inherited = {
        name: weight
        for name, weight in spread.items()
        if point in _POINTS[name] and name not in off and name not in own
    }
    return inherited | own


def _check_whole(name: str, on: Mapping[str, Mapping[str, int]], field: str) -> None:
    for group in (FILTERING + BINDING, SCORING):
        points = [point for point in group if point in _POINTS[name]]
        there = [point for point in points if name in on[point]]
        if there and there != points:
            listed = _listed(_camel(point) for point in points)
            raise FieldProblem(field, f"{name} must be on, or off, at all of {listed}")


def _names(plugins: Iterable[Plugin]) -> set[str]:
    return {plugin.name for plugin in plugins}


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(other.capitalize() for other in others)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names)
