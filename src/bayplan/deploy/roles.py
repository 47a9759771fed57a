"""The RBAC rules of each component, with the reason for each rule.

The tests run every daemon with exactly its role on a server that refuses everything else, and look
for rules that nothing uses. `docs/deploy.md` shows the rules as tables.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from bayplan.deploy.templates import (
    NAMESPACE,
    Commented,
    Conditional,
    TemplateNode,
    TextTemplate,
    ValueRef,
)

READ = ("get", "list", "watch")
FOLLOW = ("list", "watch")
RECORD = ("create", "patch")
RBAC = "rbac.authorization.k8s.io"


@dataclass(frozen=True, slots=True)
class Rule:
    """Verbs on resources of one API group, and the reason; with `names`, only on these objects."""

    reason: str
    group: str
    resources: tuple[str, ...]
    verbs: tuple[str, ...]
    names: tuple[str, ...] = ()
    when: str = ""
    """The value that enables the rule; always enabled if empty."""

    def node(self) -> TemplateNode:
        """Return the rule as a PolicyRule with its reason as a comment."""
        named: dict[str, TemplateNode] = {"resourceNames": _texts(self.names)} if self.names else {}
        rule: dict[str, TemplateNode] = {
            "apiGroups": [self.group],
            "resources": list(self.resources),
            **named,
            "verbs": list(self.verbs),
        }
        commented = Commented(self.reason, rule)
        return Conditional(self.when, commented) if self.when else commented


@dataclass(frozen=True, slots=True)
class Roles:
    """The rules of one component: cluster-wide, and in its own namespace."""

    cluster: tuple[Rule, ...] = ()
    own: tuple[Rule, ...] = ()


def _texts(names: Iterable[str]) -> list[TemplateNode]:
    return [TextTemplate(one) if "{" in one else one for one in names]


def _lease(name: str) -> tuple[Rule, ...]:
    group, leases = "coordination.k8s.io", ("leases",)
    return (
        Rule("the first replica creates the lease", group, leases, ("create",)),
        Rule("replicas elect a leader", group, leases, ("get", "update"), (name,)),
    )


EVENTS = Rule("record events", "events.k8s.io", ("events",), RECORD)


def _model_inputs(verbs: tuple[str, ...] = FOLLOW) -> tuple[Rule, ...]:
    """Return the rules for the objects that all decisions read."""
    return (
        Rule(
            "pods, nodes, volumes and owners of pods",
            "",
            (
                "pods",
                "nodes",
                "namespaces",
                "services",
                "replicationcontrollers",
                "persistentvolumes",
                "persistentvolumeclaims",
            ),
            verbs,
        ),
        Rule(
            "owners of pods, for default topology spread",
            "apps",
            ("replicasets", "statefulsets"),
            verbs,
        ),
        Rule("disruption budgets to respect", "policy", ("poddisruptionbudgets",), verbs),
        Rule("pod priorities", "scheduling.k8s.io", ("priorityclasses",), verbs),
        Rule(
            "CSI drivers, attach limits, and attachments",
            "storage.k8s.io",
            (
                "csinodes",
                "csidrivers",
                "csistoragecapacities",
                "storageclasses",
                "volumeattachments",
            ),
            verbs,
        ),
    )


SCHEDULER = Roles(
    (
        # get: an object is read again after a conflict, and on SIGUSR2 those that differ.
        *_model_inputs(READ),
        Rule("queues and pod groups", "scheduling.volcano.sh", ("queues", "podgroups"), FOLLOW),
        Rule("bind pods", "", ("pods/binding",), ("create",)),
        Rule("set PodScheduled and nominatedNodeName", "", ("pods/status",), ("patch",)),
        Rule("preempt pods, and remove scheduling gates", "", ("pods",), ("delete", "patch")),
        Rule(
            "bind claims to volumes, and set the selected node of claims",
            "",
            ("persistentvolumes", "persistentvolumeclaims"),
            ("patch",),
        ),
        Rule(
            "create pod groups for pods without one, and update their status",
            "scheduling.volcano.sh",
            ("podgroups",),
            RECORD,
        ),
        Rule(
            "update the status of queues", "scheduling.volcano.sh", ("queues/status",), ("patch",)
        ),
        EVENTS,
    ),
    (
        *_lease("{scheduler.lease}"),
        Rule(
            "compare feature gates with the autoscaler's",
            "",
            ("configmaps",),
            FOLLOW,
            ("cluster-autoscaler-status",),
        ),
    ),
)
_CLUSTER_API = "cluster.x-k8s.io"
_SCALED = ("machinedeployments", "machinesets", "machinepools")
CLUSTER_API = (
    Rule("node groups and their machines", _CLUSTER_API, (*_SCALED, "machines"), FOLLOW),
    Rule(
        "resize node groups",
        _CLUSTER_API,
        tuple(f"{one}/scale" for one in _SCALED),
        ("get", "patch"),
    ),
    Rule(
        "mark machines for deletion, and delete failed ones of a group at its minimum size",
        _CLUSTER_API,
        ("machines",),
        ("patch", "delete"),
    ),
    Rule(
        "machine templates, for the capacity of new nodes; restrict it to the kinds that you use",
        "infrastructure.cluster.x-k8s.io",
        ("*",),
        ("get",),
    ),
)
AUTOSCALER = Roles(
    (
        *_model_inputs(),
        Rule("check evicted pods and removed nodes", "", ("pods", "nodes"), ("get",)),
        Rule("daemon pods of new nodes", "apps", ("daemonsets",), FOLLOW),
        Rule("whether an evicted pod is recreated", "batch", ("jobs",), FOLLOW),
        Rule("node groups declared in the cluster", "bayplan.io", ("nodegroups",), FOLLOW),
        Rule("update the status of node groups", "bayplan.io", ("nodegroups/status",), ("patch",)),
        Rule("taint nodes that are to be removed", "", ("nodes",), ("patch",)),
        Rule("drain nodes", "", ("pods/eviction",), ("create",)),
        EVENTS,
    ),
    (
        *_lease("cluster-autoscaler"),
        Rule("create the status ConfigMap", "", ("configmaps",), ("create",)),
        Rule(
            "read removed nodes, and update the status as Cluster Autoscaler does",
            "",
            ("configmaps",),
            ("get", "patch"),
            ("cluster-autoscaler-status",),
        ),
        Rule(
            "configuration of the priority expander",
            "",
            ("configmaps",),
            FOLLOW,
            ("cluster-autoscaler-priority-expander",),
        ),
    ),
)
_HOOKS = ("mutatingwebhookconfigurations", "validatingwebhookconfigurations")
_REGISTRATION = "admissionregistration.k8s.io"
WEBHOOK = Roles(
    (
        Rule("validate queues against each other", "scheduling.volcano.sh", ("queues",), FOLLOW),
        Rule("create its own configurations", _REGISTRATION, _HOOKS, ("create",)),
        Rule(
            "update the caBundle and the failure policy of its configurations",
            _REGISTRATION,
            _HOOKS,
            ("get", "patch"),
            ("bayplan-webhook",),
        ),
    ),
    (
        Rule(
            "create the Secret with the certificate that replicas share",
            "",
            ("secrets",),
            ("create",),
            when="!webhook.certManager",
        ),
        Rule(
            "renew the certificate",
            "",
            ("secrets",),
            ("get", "patch"),
            ("bayplan-webhook",),
            when="!webhook.certManager",
        ),
    ),
)
_LIMITS = (
    Rule("instance types and published limits", "", ("nodes",), FOLLOW),
    Rule("registered CSI drivers and their limits", "storage.k8s.io", ("csinodes",), FOLLOW),
    Rule("publish attach limits", "", ("nodes/status",), ("patch",)),
    EVENTS,
)
NODE_LIMITS = Roles(_LIMITS, _lease("bayplan-node-limits"))
_IMAGES = "nodeAgent.images"
NODE_AGENT = Roles(
    (
        *_LIMITS,
        Rule("report images in the node's status", "", ("nodes",), ("get",), when=_IMAGES),
        Rule("pods of its node", "", ("pods",), FOLLOW, when=_IMAGES),
        Rule("runtime handlers", "node.k8s.io", ("runtimeclasses",), READ, when=_IMAGES),
        Rule("imagePullSecrets of pods", "", ("secrets",), ("get",), when=_IMAGES),
    )
)
READER = Roles(
    (
        *_model_inputs(),
        Rule("daemon pods of new nodes", "apps", ("daemonsets",), FOLLOW),
        Rule("whether an evicted pod is recreated", "batch", ("jobs",), FOLLOW),
        Rule("queues and pod groups", "scheduling.volcano.sh", ("queues", "podgroups"), FOLLOW),
        Rule("node groups declared in the cluster", "bayplan.io", ("nodegroups",), FOLLOW),
        Rule("claimed devices", "resource.k8s.io", ("deviceclasses", "resourceclaims"), FOLLOW),
        Rule("detect two active autoscalers", "coordination.k8s.io", ("leases",), FOLLOW),
        Rule("detect webhooks that cannot work", _REGISTRATION, _HOOKS, FOLLOW),
    )
)
BY_COMPONENT = {
    "scheduler": SCHEDULER,
    "autoscaler": AUTOSCALER,
    "autoscaler-clusterapi": Roles(CLUSTER_API),
    "webhook": WEBHOOK,
    "node-limits": NODE_LIMITS,
    "node-agent": NODE_AGENT,
    "reader": READER,
}


def service_account(name: str, labels: TemplateNode) -> TemplateNode:
    """Return a ServiceAccount."""
    meta: TemplateNode = {"name": name, "namespace": ValueRef(NAMESPACE), "labels": labels}
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta}


def role_objects(name: str, labels: TemplateNode, roles: Roles, to: str) -> list[TemplateNode]:
    """Return the roles and their bindings to a service account."""
    made: list[TemplateNode] = []
    if roles.cluster:
        made += [cluster_role(name, labels, roles.cluster), _bound("Cluster", name, labels, to)]
    if roles.own:
        own = [_role("", name, labels, roles.own), _bound("", name, labels, to)]
        # A role whose rules all depend on one value is left out with them.
        conditions = {one.when for one in roles.own}
        condition = conditions.pop() if len(conditions) == 1 else ""
        made += [Conditional(condition, one) for one in own] if condition else own
    return made


def cluster_role(name: str, labels: TemplateNode, rules: tuple[Rule, ...]) -> TemplateNode:
    """Return a ClusterRole."""
    return _role("Cluster", name, labels, rules)


def _role(scope: str, name: str, labels: TemplateNode, rules: tuple[Rule, ...]) -> TemplateNode:
    return {
        "apiVersion": f"{RBAC}/v1",
        "kind": f"{scope}Role",
        "metadata": _meta(scope, name, labels),
        "rules": [one.node() for one in rules],
    }


def _bound(scope: str, name: str, labels: TemplateNode, to: str) -> TemplateNode:
    subject: TemplateNode = {"kind": "ServiceAccount", "name": to, "namespace": ValueRef(NAMESPACE)}
    return {
        "apiVersion": f"{RBAC}/v1",
        "kind": f"{scope}RoleBinding",
        "metadata": _meta(scope, name, labels),
        "roleRef": {"apiGroup": RBAC, "kind": f"{scope}Role", "name": name},
        "subjects": [subject],
    }


def _meta(scope: str, name: str, labels: TemplateNode) -> TemplateNode:
    where: dict[str, TemplateNode] = {} if scope else {"namespace": ValueRef(NAMESPACE)}
    return {"name": name, **where, "labels": labels}
