"""PodTopologySpread: pods are spread over domains, as they must or should be."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from bayplan.fit.plugins.arguments import (
    Arguments,
    ArgumentStruct,
    PluginArguments,
    check_in_pod,
    require,
)
from bayplan.fit.plugins.explanation import topology_keys
from bayplan.fit.plugins.plugin import FILTERING, SCORING, Cause, SchedulerPlugin
from bayplan.fit.plugins.pod_topology_spread.explanation import EXPLAINER
from bayplan.fit.plugins.pod_topology_spread.filter import HINTS, NAME, compile_filter
from bayplan.fit.plugins.pod_topology_spread.score import compile_score
from bayplan.fit.requirements.default_spread import SpreadDefault, SpreadDefaults
from bayplan.kube.meta import Int32
from bayplan.kube.pods import PodSpec, TopologySpreadConstraint


class DefaultConstraint(ArgumentStruct):
    """A spreading constraint of pods that have none of their own."""

    max_skew: Int32
    topology_key: str
    when_unsatisfiable: Literal["DoNotSchedule", "ScheduleAnyway"]
    label_selector: dict[str, object] | None = None
    match_label_keys: list[str] = []
    min_domains: Int32 | None = None
    node_affinity_policy: Literal["Honor", "Ignore"] = "Honor"
    node_taints_policy: Literal["Honor", "Ignore"] = "Ignore"


class PodTopologySpreadArgs(PluginArguments):
    """Arguments of PodTopologySpread."""

    default_constraints: list[DefaultConstraint] = []
    defaulting_type: Literal["System", "List", ""] = ""


def _compile(args: PodTopologySpreadArgs, field: str) -> SpreadDefaults:
    constraints, place = args.default_constraints, f"{field}.defaultConstraints"
    if args.defaulting_type != "List":
        require(not constraints, f"{field}.defaultingType", "must be List for defaultConstraints")
        return SpreadDefaults()
    kinds: set[tuple[str, str]] = set()
    for index, one in enumerate(constraints):
        key = (one.topology_key, one.when_unsatisfiable)
        require(key not in kinds, f"{place}[{index}]", f"{' '.join(key)} is there twice")
        require(one.max_skew > 0, f"{place}[{index}].maxSkew", "must be more than 0")
        has_none = one.label_selector is None
        require(has_none, f"{place}[{index}].labelSelector", "is deduced for each pod")
        kinds.add(key)
    in_pod = [_in_pod(one) for one in constraints]
    check_in_pod(PodSpec(topology_spread_constraints=in_pod), place)
    return SpreadDefaults(tuple(map(_default, constraints)))


def _in_pod(constraint: DefaultConstraint) -> TopologySpreadConstraint:
    return TopologySpreadConstraint(
        max_skew=constraint.max_skew,
        topology_key=constraint.topology_key,
        when_unsatisfiable=constraint.when_unsatisfiable,
        match_label_keys=constraint.match_label_keys,
        min_domains=constraint.min_domains,
        node_affinity_policy=constraint.node_affinity_policy,
        node_taints_policy=constraint.node_taints_policy,
    )


def _default(constraint: DefaultConstraint) -> SpreadDefault:
    return SpreadDefault(
        max_skew=constraint.max_skew,
        topology_key=constraint.topology_key,
        must_hold=constraint.when_unsatisfiable == "DoNotSchedule",
        min_domains=constraint.min_domains or 1,
        honor_affinity=constraint.node_affinity_policy == "Honor",
        honor_taints=constraint.node_taints_policy == "Honor",
    )


def _warnings(args: PodTopologySpreadArgs) -> Iterator[str]:
    if any(one.match_label_keys for one in args.default_constraints):
        yield (
            "matchLabelKeys of PodTopologySpread's defaultConstraints:"
            " whom a pod is spread with is deduced from what is behind it"
        )


PLUGIN = SchedulerPlugin(
    name=NAME,
    points=(*FILTERING, *SCORING),
    node_fields=("metadata.labels", "spec.taints"),
    cause=Cause.SPREAD,
    filters=(compile_filter,),
    score=compile_score,
    arguments=Arguments(PodTopologySpreadArgs, _compile, _warnings),
    has_other_rules=lambda request: bool(request.default_spread.hard),
    weight=2,
    hints=HINTS,
    explainer=EXPLAINER,
    node_labels=topology_keys,
)
