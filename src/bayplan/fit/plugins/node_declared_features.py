"""NodeDeclaredFeatures: a pod goes only where the kubelet declares the features that it needs.

Kubelets list in `status.declaredFeatures` what they have switched on of what is new; what a pod
needs is read off its spec. In kube-scheduler 1.35 and 1.36 it is behind a gate of the same name
that is off by default, and so the default profile has it not: a configuration may enable it.
"""

from __future__ import annotations

from bayplan.fit.plugins.base import EvaluationRequest, Filter, NodeSetFilter
from bayplan.fit.plugins.explanation import Explainer, Trial
from bayplan.fit.plugins.hints import ClusterEvent, Hints, UnschedulablePod
from bayplan.fit.plugins.plugin import FILTERING, SchedulerPlugin
from bayplan.kube.nodes import Node
from bayplan.kube.pods import Container, Pod

NAME = "NodeDeclaredFeatures"
REASON = "node(s) didn't match Pod's required features"
RESTART_ALL = "RestartAllContainersOnContainerExits"
HOST_NETWORK_USERS = "UserNamespacesHostNetworkSupport"
NO_FEATURES: tuple[str, ...] = ()


def required_features(pod: Pod) -> tuple[str, ...]:
    """The features without which a node cannot run a pod."""
    spec, found = pod.spec, NO_FEATURES
    if _restarts_all(spec.containers) or _restarts_all(spec.init_containers):
        found += (RESTART_ALL,)
    if spec.host_network and spec.host_users is False:
        found += (HOST_NETWORK_USERS,)
    return found


def _restarts_all(containers: list[Container]) -> bool:
    rules = (rule for container in containers for rule in container.restart_rules)
    return any(rule.action == "RestartAllContainers" for rule in rules)


def compile_filter(request: EvaluationRequest) -> Filter | None:
    """Compile the filter, if the pod needs features."""
    wanted = frozenset(request.signature.plugin_fields.get(NAME, ()))
    if not wanted:
        return None
    nodes = request.cluster.node_sets.where(
        (NAME, wanted), lambda node: wanted.issubset(node.status.declared_features)
    )
    return NodeSetFilter(NAME, nodes, REASON)


def _node_may_help(pending: UnschedulablePod, event: ClusterEvent) -> bool:  # noqa: ARG001 - for every pod
    """Whether a node was added, or declares other features."""
    before, after = event.before, event.after
    if not isinstance(after, Node):
        return False
    if not isinstance(before, Node):
        return True
    return before.status.declared_features != after.status.declared_features


_HINTS: Hints = {Node: _node_may_help}


def _details(trial: Trial) -> list[str]:
    missing = set(required_features(trial.pod)).difference(trial.node.status.declared_features)
    return [f"it does not declare feature {name}" for name in sorted(missing)]


PLUGIN = SchedulerPlugin(
    name=NAME,
    points=FILTERING,
    default=False,
    node_fields=("status.declared_features",),
    pod_fields=("spec.host_network", "spec.host_users"),
    sign=required_features,
    refuses_for_good=True,
    filters=(compile_filter,),
    hints=_HINTS,
    explainer=Explainer(details=_details),
)
