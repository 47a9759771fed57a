"""Comparing which nodes Bayplan would give back with what Cluster Autoscaler would.

Each case is asked with the gate VolumeLimitScaling off and on, and without its CSINodes. It holds
if all of that is as recorded: what is used of each node, whether it is looked at, what becomes of
each pod, each node by itself, and all nodes one after the other. Where the order in which nodes and
pods are listed decides, as it does at random in Cluster Autoscaler, either answer is right.

Where a node has no CSINode, Cluster Autoscaler with CSI awareness ends its loop (`SnapshotFailed`)
and removes nothing. Bayplan takes it for a node without drivers; there is nothing to compare with,
so all that is asked of such a case with the gate on is that every node gets an answer.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from bayplan.autoscaler.clusterview import ClusterView
from bayplan.autoscaler.options import AutoscalerOptions
from bayplan.autoscaler.scaledown import Planner, ScaleDownContext, ScaleDownPlan
from bayplan.autoscaler.scaledown.drain import (
    BudgetIndexCache,
    Controllers,
    DrainContext,
    drain_verdict,
    is_evicted_daemon,
)
from bayplan.autoscaler.scaledown.eligibility import (
    EligibilityChecker,
    NodeEligibility,
    Utilization,
)
from bayplan.autoscaler.scaledown.reasons import UnremovableNode
from bayplan.autoscaler.scaledown.simulator import (
    Destinations,
    NodeToBeRemoved,
    RemovalSimulator,
    count_nominated,
)
from bayplan.autoscaler.templates import NodeGroupView
from bayplan.fit import Profile, Snapshot
from bayplan.kube.codec import decode_object
from bayplan.kube.meta import KubeObject
from bayplan.kube.pods import Pod
from bayplan.kube.storage import CSINode
from bayplan.kube.workloads import DaemonSet, Job
from bayplan.nodegroups import CloudNodeGroup
from tests.oracle.corpus import ScaleDownCase

GROUP = "group"
MANY = 1_000_000
CLOSE = 1e-9
Answers = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class _Scenario:
    """A case as one way of asking has it."""

    case: ScaleDownCase
    view: ClusterView
    controllers: Controllers

    @property
    def gpu_label(self) -> str:
        label: str = self.case.options["gpuLabel"]
        return label

    def scene(self) -> DrainContext:
        """With fresh budgets."""
        budgets = BudgetIndexCache().remaining(self.view.snapshot)
        return DrainContext(self.view.now, self.view.options, budgets, self.controllers)


def differences(case: ScaleDownCase) -> list[str]:
    """Where a case does not hold."""
    return [f"{case.name} {problem}" for problem in _problems(case)]


def _problems(case: ScaleDownCase) -> Iterator[str]:
    expected = case.expected
    yield from _compare(_scenario(case, gate=False), expected["off"])
    with_gate = _scenario(case, gate=True)
    if "error" in expected["on"]:
        yield from _unanswered(with_gate)
    else:
        answers = expected["off"] if expected["on"] == "same" else expected["on"]
        yield from (f"with the gate: {one}" for one in _compare(with_gate, answers))
    without = _scenario(case, gate=False, csinodes=False)
    changed = expected.get("withoutCSINodes") or {}
    yield from _compare_without(without, expected["off"]["removal"], changed)


def _scenario(case: ScaleDownCase, *, gate: bool, csinodes: bool = True) -> _Scenario:
    seen = [
        one
        for one in map(decode_object, case.objects)
        if _is_seen(one, case.options, csinodes=csinodes)
    ]
    snapshot = Snapshot(seen, profile=Profile.kubernetes(volume_limit_scaling=gate))
    controllers = Controllers(
        snapshot,
        {one.key: one for one in seen if isinstance(one, Job)},
        {one.key: one for one in seen if isinstance(one, DaemonSet)},
    )
    return _Scenario(case, _world(case.options, snapshot), controllers)


def _is_seen(one: KubeObject, options: Mapping[str, Any], *, csinodes: bool) -> bool:
    if isinstance(one, CSINode):
        return csinodes
    if not isinstance(one, Pod):
        return True
    priority = one.spec.priority
    if one.is_terminal or (
        priority is not None and priority < options["expendablePodsPriorityCutoff"]
    ):
        return False
    return bool(one.spec.node_name or one.status.nominated_node_name)


def _world(given: Mapping[str, Any], snapshot: Snapshot) -> ClusterView:
    options = AutoscalerOptions(
        skip_nodes_with_system_pods=given["skipNodesWithSystemPods"],
        skip_nodes_with_local_storage=given["skipNodesWithLocalStorage"],
        skip_nodes_with_custom_controller_pods=given["skipNodesWithCustomControllerPods"],
        min_replica_count=given["minReplicaCount"],
        blocking_system_pod_distruption_timeout=given["bspDisruptionTimeoutSeconds"],
        scale_down_unready_enabled=given["scaleDownUnreadyEnabled"],
        scale_down_utilization_threshold=given["utilizationThreshold"],
        scale_down_gpu_utilization_threshold=given["gpuThreshold"],
        ignore_daemonsets_utilization=given["ignoreDaemonSetsUtilization"],
        ignore_mirror_pods_utilization=given["ignoreMirrorPodsUtilization"],
        scale_down_unneeded_time=0.0,
        scale_down_unready_time=0.0,
        max_scale_down_parallelism=MANY,
    )
    nodes = [one for one in snapshot.cluster.slots.by_name if one not in given["notAutoscaled"]]
    group = CloudNodeGroup(GROUP, 0, MANY)
    view = NodeGroupView(group, len(nodes), options=options.group_defaults(), nodes=tuple(nodes))
    return ClusterView(
        snapshot,
        datetime.fromisoformat(given["now"]),
        options,
        {GROUP: view},
        dict.fromkeys(nodes, GROUP),
    )


def _compare(scenario: _Scenario, answers: Answers) -> Iterator[str]:
    case, snapshot = scenario.case, scenario.view.snapshot
    with snapshot.fork():
        count_nominated(snapshot)
        judged = EligibilityChecker(scenario.gpu_label).of(scenario.view)
        for name, wanted in case.expected["nodes"].items():
            yield from _compare_node(scenario, judged[name], wanted)
        for name, wanted in answers["removal"].items():
            yield from _compare_removal(scenario, name, wanted)
    yield from _compare_sequence(_plan(scenario), answers["sequential"])


def _compare_node(scenario: _Scenario, judged: NodeEligibility, wanted: Answers) -> Iterator[str]:
    name = judged.node.name
    if not _same_use(judged.used, wanted["utilization"]):
        yield f"{name}: ours {judged.used}, theirs {wanted['utilization']}"
    reason = judged.unremovable and judged.unremovable.reason.value
    if reason != wanted.get("reason"):
        yield f"{name}: ours {reason}, theirs {wanted.get('reason')}"
    scene = scenario.scene()
    records = scenario.view.snapshot.cluster.records_on(name)
    ours = {record.key: _said(record.pod, scene) for record in records}
    if ours != (wanted.get("pods") or {}):
        yield f"{name}: ours {ours}, theirs {wanted.get('pods')}"


def _said(pod: Pod, scene: DrainContext) -> str:
    found = drain_verdict(pod, scene)
    return f"block:{found.reason.value}" if found.reason else found.outcome.value


def _same_use(ours: Utilization | None, theirs: Answers) -> bool:
    if ours is None or theirs.get("error"):
        return ours is None and bool(theirs.get("error"))
    wanted = {ours.resource: theirs["gpu"]} if "gpu" in theirs else theirs
    shares = {name: wanted[name] for name in ours.shares}
    return (
        ours.resource == theirs["resource"]
        and _same(ours.value, theirs["value"])
        and all(_same(ours.shares[name], share) for name, share in shares.items())
    )


def _same(ours: float, theirs: float | str) -> bool:
    number = float(theirs)
    if math.isnan(number):
        return math.isnan(ours)
    return math.isclose(ours, number, rel_tol=CLOSE)


def _take_away(scenario: _Scenario, name: str) -> NodeToBeRemoved | UnremovableNode:
    """One node, from the untouched cluster."""
    snapshot = scenario.view.snapshot
    every = Destinations(snapshot, snapshot.cluster.slots.by_name)
    with snapshot.fork():
        return RemovalSimulator(snapshot, scenario.scene(), every).simulate_removal(name)


def _compare_removal(scenario: _Scenario, name: str, wanted: Answers) -> Iterator[str]:
    found = _take_away(scenario, name)
    ours, theirs = _outcome(found), _wanted_outcome(wanted)
    if ours != theirs and not wanted.get("orderDependent"):
        yield f"{name} alone: ours {ours}, theirs {theirs}"
    elif isinstance(found, NodeToBeRemoved) and wanted["removable"]:
        yield from _compare_sets(scenario, found, wanted)
    elif isinstance(found, UnremovableNode) and found.blocking is not None:
        verdicts = scenario.case.expected["nodes"][name]["pods"]
        said = f"block:{found.blocking.reason.value}"
        if verdicts.get(found.blocking.pod) != said:
            yield f"{name} alone: ours {found}"


def _compare_sets(scenario: _Scenario, found: NodeToBeRemoved, wanted: Answers) -> Iterator[str]:
    options = scenario.view.options
    by_default = (
        options.daemonset_eviction_for_empty_nodes
        if found.is_empty
        else options.daemonset_eviction_for_occupied_nodes
    )
    ours = {
        "reschedule": {pod.key for pod, _ in found.moved},
        "daemonSet": {pod.key for pod in found.daemons},
        "daemonSetEvict": {p.key for p in found.daemons if is_evicted_daemon(p, by_default)},
        "onCompletion": {pod.key for pod in found.on_completion},
    }
    for kind, pods in ours.items():
        if pods != set(wanted.get(kind) or ()):
            yield f"{found.node} {kind}: ours {sorted(pods)}, theirs {wanted.get(kind)}"


def _compare_without(
    scenario: _Scenario, before: Answers, changed: Mapping[str, str]
) -> Iterator[str]:
    snapshot = scenario.view.snapshot
    with snapshot.fork():
        count_nominated(snapshot)
        for name, wanted in before.items():
            ours = _outcome(_take_away(scenario, name))
            theirs = changed.get(name) or _wanted_outcome(wanted)
            if ours != theirs and not wanted.get("orderDependent"):
                yield f"{name} without CSINodes: ours {ours}, theirs {theirs}"


def _plan(scenario: _Scenario) -> ScaleDownPlan:
    planner = Planner(scenario.gpu_label, order=lambda _judged, names: sorted(names))
    return planner.plan(scenario.view, ScaleDownContext(scenario.controllers))


def _compare_sequence(plan: ScaleDownPlan, wanted: Answers) -> Iterator[str]:
    kept = {one.node: one.reason.value for one in plan.unremovable}
    for step in wanted["steps"][: wanted["agree"]]:
        name = step["node"]
        ours = "removable" if name in plan.unneeded else kept.get(name)
        if ours != _wanted_outcome(step):
            yield f"{name} in turn: ours {ours}, theirs {_wanted_outcome(step)}"
    if wanted["deleteStable"]:
        yield from _compare_deleted(plan, wanted)


def _compare_deleted(plan: ScaleDownPlan, wanted: Answers) -> Iterator[str]:
    waiting = {one.node for one in plan.unremovable if one.node in plan.unneeded}
    ours = {
        "empty": {one.node for one in plan.to_remove if one.is_empty},
        "drain": {one.node for one in plan.to_remove if not one.is_empty},
        "blocked": waiting,
    }
    theirs = {**wanted["delete"], "blocked": wanted.get("blockedByOnCompletion") or ()}
    for kind, nodes in ours.items():
        if nodes != set(theirs[kind] or ()):
            yield f"{kind}: ours {sorted(nodes)}, theirs {theirs[kind]}"


def _unanswered(scenario: _Scenario) -> Iterator[str]:
    """The nodes of which nothing is said."""
    plan = _plan(scenario)
    told = {one.node for one in plan.unremovable} | set(plan.unneeded)
    for name in scenario.view.snapshot.cluster.slots.by_name:
        if name not in told:
            yield f"{name}: no answer"


def _outcome(found: NodeToBeRemoved | UnremovableNode) -> str:
    return "removable" if isinstance(found, NodeToBeRemoved) else found.reason.value


def _wanted_outcome(wanted: Answers) -> str:
    outcome: str = "removable" if wanted["removable"] else wanted["reason"]
    return outcome
