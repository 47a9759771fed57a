"""What plugins are told: read and checked as kube-scheduler does, refused where we cannot obey."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from bayplan.base.configfiles import FieldProblem, refuse_unknown, shaped
from bayplan.kube.names import is_qualified_name
from bayplan.kube.pods import Affinity as PodAffinities
from bayplan.kube.pods import Container, NodeAffinity, Pod, PodSpec, TopologySpreadConstraint
from bayplan.kube.validation import check
from bayplan.scheduler.config import wire
from bayplan.scheduler.config.plugins import check_known
from bayplan.scheduler.config.settings import PluginArgs

Told = TypeVar("Told", bound=wire.Args)
Reader = Callable[[PluginArgs, dict[str, object], str], PluginArgs]
_MOST_POINTS_SCORE = 10


def plugin_args(configs: Sequence[wire.PluginConfig], field: str) -> PluginArgs:
    """What all plugins of a profile are told."""
    args = PluginArgs()
    seen: set[str] = set()
    for index, config in enumerate(configs):
        place = f"{field}[{index}]"
        check_known(config.name, f"{place}.name")
        if config.name in seen:
            raise FieldProblem(place, f"{config.name} is there twice")
        seen.add(config.name)
        reader = _READERS.get(config.name)
        if reader is not None:
            args = reader(args, config.args, f"{place}.args")
        elif config.args:
            raise FieldProblem(f"{place}.args", f"{config.name} takes none")
    return args


def _read(args: dict[str, object], kind: type[Told], field: str) -> Told:
    told = shaped(args, kind, field)
    if told.kind and told.kind != kind.__name__:
        raise FieldProblem(f"{field}.kind", f"must be {kind.__name__}")
    return told


def _node_resources_fit(args: PluginArgs, said: dict[str, object], field: str) -> PluginArgs:
    told = _read(said, wire.NodeResourcesFitArgs, field)
    strategy, place = told.scoring_strategy, f"{field}.scoringStrategy"
    for name in told.ignored_resources:
        _need(is_qualified_name(name), f"{field}.ignoredResources", f"{name[:80]!r} is no resource")
    for group in told.ignored_resource_groups:
        sound = is_qualified_name(group) and "/" not in group
        _need(sound, f"{field}.ignoredResourceGroups", f"{group[:80]!r} is no group")
    return replace(
        args,
        strategy=_strategy(strategy.type, f"{place}.type"),
        strategy_resources=_weighted(strategy.resources, f"{place}.resources")
        or args.strategy_resources,
        strategy_shape=_ratio(strategy, place),
        ignored_resources=frozenset(told.ignored_resources),
        ignored_resource_groups=frozenset(told.ignored_resource_groups),
    )


def _strategy(name: str, field: str) -> str:
    known = ("LeastAllocated", "MostAllocated", "RequestedToCapacityRatio")
    _need(name in known, field, f"must be one of {', '.join(known)}")
    return name


def _weighted(resources: Sequence[wire.ResourceSpec], field: str) -> tuple[tuple[str, int], ...]:
    for index, resource in enumerate(resources):
        in_range = 0 <= resource.weight <= 100
        _need(in_range, f"{field}[{index}].weight", "not in the range from 1 to 100")
    return tuple((resource.name, resource.weight or 1) for resource in resources)


def _ratio(strategy: wire.ScoringStrategy, field: str) -> tuple[tuple[int, int], ...]:
    given, place = strategy.requested_to_capacity_ratio, f"{field}.requestedToCapacityRatio"
    wanted = strategy.type == "RequestedToCapacityRatio"
    _need(wanted or given is None, place, "is only for the type RequestedToCapacityRatio")
    if not wanted:
        return ()
    _need(given is not None and bool(given.shape), f"{place}.shape", "needs at least one point")
    return _shape(given.shape if given is not None else (), f"{place}.shape")


def _shape(points: Sequence[wire.ShapePoint], field: str) -> tuple[tuple[int, int], ...]:
    last = -1
    for index, point in enumerate(points):
        place = f"{field}[{index}]"
        _need(0 <= point.utilization <= 100, f"{place}.utilization", "not from 0 to 100")
        _need(0 <= point.score <= _MOST_POINTS_SCORE, f"{place}.score", "not from 0 to 10")
        _need(point.utilization > last, f"{place}.utilization", "must be more than the one before")
        last = point.utilization
    return tuple((point.utilization, point.score) for point in points)


def _balanced(args: PluginArgs, said: dict[str, object], field: str) -> PluginArgs:
    told = _read(said, wire.NodeResourcesBalancedAllocationArgs, field)
    names = [resource.name for resource in told.resources]
    for index, resource in enumerate(told.resources):
        place = f"{field}.resources[{index}]"
        _need(resource.weight in {0, 1}, f"{place}.weight", "must be 1")
        _need(names.index(resource.name) == index, f"{place}.name", "is there twice")
    return replace(args, balanced_resources=tuple(names)) if names else args


def _inter_pod_affinity(args: PluginArgs, said: dict[str, object], field: str) -> PluginArgs:
    told = _read(said, wire.InterPodAffinityArgs, field)
    weight = told.hard_pod_affinity_weight
    _need(0 <= weight <= 100, f"{field}.hardPodAffinityWeight", "not from 0 to 100")
    return replace(
        args,
        hard_pod_affinity_weight=weight,
        ignore_preferred_terms_of_existing_pods=told.ignore_preferred_terms_of_existing_pods,
    )


def _node_affinity(args: PluginArgs, said: dict[str, object], field: str) -> PluginArgs:
    told, place = _read(said, wire.NodeAffinityArgs, field), f"{field}.addedAffinity"
    if told.added_affinity is None:
        return args
    refuse_unknown(told.added_affinity, NodeAffinity, place)
    added = shaped(told.added_affinity, NodeAffinity, place)
    _check_in_a_pod(PodSpec(affinity=PodAffinities(node_affinity=added)), place)
    return replace(args, added_affinity=added)


def _pod_topology_spread(args: PluginArgs, said: dict[str, object], field: str) -> PluginArgs:
    told = _read(said, wire.PodTopologySpreadArgs, field)
    constraints, place = told.default_constraints, f"{field}.defaultConstraints"
    if told.defaulting_type != "List":
        _need(not constraints, f"{field}.defaultingType", "must be List for defaultConstraints")
        return args
    kinds: set[tuple[str, str]] = set()
    for index, one in enumerate(constraints):
        key = (one.topology_key, one.when_unsatisfiable)
        _need(key not in kinds, f"{place}[{index}]", f"{' '.join(key)} is there twice")
        _need(one.max_skew > 0, f"{place}[{index}].maxSkew", "must be more than 0")
        no_selector = one.label_selector is None
        _need(no_selector, f"{place}[{index}].labelSelector", "is deduced for each pod")
        kinds.add(key)
    spread = [_constraint(one) for one in constraints]
    _check_in_a_pod(PodSpec(topology_spread_constraints=spread), place)
    return replace(args, default_constraints=tuple(spread))


def _constraint(said: wire.DefaultConstraint) -> TopologySpreadConstraint:
    return TopologySpreadConstraint(
        max_skew=said.max_skew,
        topology_key=said.topology_key,
        when_unsatisfiable=said.when_unsatisfiable,
        match_label_keys=said.match_label_keys,
        min_domains=said.min_domains,
        node_affinity_policy=said.node_affinity_policy,
        node_taints_policy=said.node_taints_policy,
    )


def _volume_binding(args: PluginArgs, said: dict[str, object], field: str) -> PluginArgs:
    told = _read(said, wire.VolumeBindingArgs, field)
    _need(told.bind_timeout_seconds >= 0, f"{field}.bindTimeoutSeconds", "must not be negative")
    no_shape = told.shape is None
    _need(no_shape, f"{field}.shape", "needs Kubernetes' gate StorageCapacityScoring: not had here")
    return replace(args, bind_timeout=float(told.bind_timeout_seconds))


def _default_preemption(args: PluginArgs, said: dict[str, object], field: str) -> PluginArgs:
    told = _read(said, wire.DefaultPreemptionArgs, field)
    percent, absolute = told.min_candidate_nodes_percentage, told.min_candidate_nodes_absolute
    _need(0 <= percent <= 100, f"{field}.minCandidateNodesPercentage", "not from 0 to 100")
    _need(absolute >= 0, f"{field}.minCandidateNodesAbsolute", "must not be negative")
    _need(bool(percent or absolute), f"{field}.minCandidateNodesPercentage",
          "must not be 0 where minCandidateNodesAbsolute is")  # fmt: skip
    return replace(args, min_candidates_percentage=percent, min_candidates_absolute=absolute)


def _check_in_a_pod(spec: PodSpec, field: str) -> None:
    """What is sound in a pod is sound as a default for pods."""
    spec.containers = [Container(name="c")]
    pod = Pod(spec=spec)
    pod.metadata.name = "p"
    try:
        check(pod)
    except ValueError as error:
        raise FieldProblem(field, str(error).partition(": ")[2]) from None


def _need(holds: bool, field: str, problem: str) -> None:
    if not holds:
        raise FieldProblem(field, problem)


_READERS: dict[str, Reader] = {
    "DefaultPreemption": _default_preemption,
    "InterPodAffinity": _inter_pod_affinity,
    "NodeAffinity": _node_affinity,
    "NodeResourcesBalancedAllocation": _balanced,
    "NodeResourcesFit": _node_resources_fit,
    "PodTopologySpread": _pod_topology_spread,
    "VolumeBinding": _volume_binding,
}
