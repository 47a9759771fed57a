"""What each part may do: no more than it does, and why it does it.

The tests run every daemon with exactly its role on a server that refuses everything else, and look
for rules that nothing needs. `docs/deploy.md` has the same as a table.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from bayplan.deploy.holes import NAMESPACE, Node, Remark, Text, Value, When

READ = ("get", "list", "watch")
FOLLOW = ("list", "watch")
TELL = ("create", "patch")
RBAC = "rbac.authorization.k8s.io"


@dataclass(frozen=True, slots=True)
class Rule:
    """Verbs on resources of one group, and why; with `names`, on these objects alone."""

    why: str
    group: str
    resources: tuple[str, ...]
    verbs: tuple[str, ...]
    names: tuple[str, ...] = ()
    when: str = ""
    """The value on which it hangs, if it does."""

    def node(self) -> Node:
        """The rule as a role has it."""
        named: dict[str, Node] = {"resourceNames": _texts(self.names)} if self.names else {}
        rule: dict[str, Node] = {
            "apiGroups": [self.group],
            "resources": list(self.resources),
            **named,
            "verbs": list(self.verbs),
        }
        said = Remark(self.why, rule)
        return When(self.when, said) if self.when else said


@dataclass(frozen=True, slots=True)
class Roles:
    """What one part may do: in the whole cluster, and in its own namespace."""

    cluster: tuple[Rule, ...] = ()
    own: tuple[Rule, ...] = ()


def _texts(names: Iterable[str]) -> list[Node]:
    return [Text(one) if "{" in one else one for one in names]


def _lease(name: str) -> tuple[Rule, ...]:
    group, leases = "coordination.k8s.io", ("leases",)
    return (
        Rule("the first replica makes the lease", group, leases, ("create",)),
        Rule("replicas elect a leader", group, leases, ("get", "update"), (name,)),
    )


EVENTS = Rule("say what was done, and why not", "events.k8s.io", ("events",), TELL)


def _decided_from(verbs: tuple[str, ...] = FOLLOW) -> tuple[Rule, ...]:
    """What all decisions look at."""
    return (
        Rule(
            "pods, nodes, volumes and what owns pods are what decisions are made from",
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
        Rule("owners of pods, which are spread", "apps", ("replicasets", "statefulsets"), verbs),
        Rule("budgets that are not to be broken", "policy", ("poddisruptionbudgets",), verbs),
        Rule("priorities", "scheduling.k8s.io", ("priorityclasses",), verbs),
        Rule(
            "drivers, their limits, and what is attached where",
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
        # What a write was refused for is looked at again, and on SIGUSR2 all that differs.
        *_decided_from(READ),
        Rule("queues and gangs", "scheduling.volcano.sh", ("queues", "podgroups"), FOLLOW),
        Rule("place pods", "", ("pods/binding",), ("create",)),
        Rule("say why a pod waits, and for which node", "", ("pods/status",), ("patch",)),
        Rule("preempt pods, and take queues' gates away", "", ("pods",), ("delete", "patch")),
        Rule(
            "bind claims to volumes, and name the node of a claim's first consumer",
            "",
            ("persistentvolumes", "persistentvolumeclaims"),
            ("patch",),
        ),
        Rule(
            "make groups for pods without one, and say how groups stand",
            "scheduling.volcano.sh",
            ("podgroups",),
            TELL,
        ),
        Rule("say how queues stand", "scheduling.volcano.sh", ("queues/status",), ("patch",)),
        EVENTS,
    ),
    (
        *_lease("{scheduler.lease}"),
        Rule(
            "see which gates the autoscaler has on",
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
    Rule("groups and their machines", _CLUSTER_API, (*_SCALED, "machines"), FOLLOW),
    Rule(
        "resize groups",
        _CLUSTER_API,
        tuple(f"{one}/scale" for one in _SCALED),
        ("get", "patch"),
    ),
    Rule(
        "mark machines that are to go, and remove those that failed at a group's minimum",
        _CLUSTER_API,
        ("machines",),
        ("patch", "delete"),
    ),
    Rule(
        "templates that say how large a group's machines are; name the kinds that you have",
        "infrastructure.cluster.x-k8s.io",
        ("*",),
        ("get",),
    ),
)
AUTOSCALER = Roles(
    (
        *_decided_from(),
        Rule("what is evicted and removed is looked at again", "", ("pods", "nodes"), ("get",)),
        Rule("what each new node runs besides", "apps", ("daemonsets",), FOLLOW),
        Rule("whether a pod that is evicted comes back", "batch", ("jobs",), FOLLOW),
        Rule("groups that are declared in the cluster", "bayplan.io", ("nodegroups",), FOLLOW),
        Rule("say how these stand", "bayplan.io", ("nodegroups/status",), ("patch",)),
        Rule("taint nodes that are to go", "", ("nodes",), ("patch",)),
        Rule("empty them", "", ("pods/eviction",), ("create",)),
        EVENTS,
    ),
    (
        *_lease("cluster-autoscaler"),
        Rule("the status is made once", "", ("configmaps",), ("create",)),
        Rule(
            "the status, as Cluster Autoscaler writes it",
            "",
            ("configmaps",),
            ("patch",),
            ("cluster-autoscaler-status",),
        ),
        Rule(
            "priorities that people write for the expander",
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
        Rule("what queues are judged against", "scheduling.volcano.sh", ("queues",), FOLLOW),
        Rule("its own configurations are made once", _REGISTRATION, _HOOKS, ("create",)),
        Rule(
            "and kept right: who is trusted, what happens without it",
            _REGISTRATION,
            _HOOKS,
            ("get", "patch"),
            ("bayplan-webhook",),
        ),
    ),
    (
        Rule(
            "the certificates that replicas share are made once",
            "",
            ("secrets",),
            ("create",),
            when="!webhook.certManager",
        ),
        Rule(
            "and renewed",
            "",
            ("secrets",),
            ("get", "patch"),
            ("bayplan-webhook",),
            when="!webhook.certManager",
        ),
    ),
)
_LIMITS = (
    Rule("instance types, and what is published", "", ("nodes",), FOLLOW),
    Rule("which drivers there are, and what they say", "storage.k8s.io", ("csinodes",), FOLLOW),
    Rule("publish attach limits", "", ("nodes/status",), ("patch",)),
    EVENTS,
)
NODE_LIMITS = Roles(_LIMITS, _lease("bayplan-node-limits"))
_IMAGES = "nodeAgent.images"
NODE_AGENT = Roles(
    (
        *_LIMITS,
        Rule("its node's images, to tell them", "", ("nodes",), ("get",), when=_IMAGES),
        Rule("the pods of its node", "", ("pods",), FOLLOW, when=_IMAGES),
        Rule("which handler a class has", "node.k8s.io", ("runtimeclasses",), READ, when=_IMAGES),
        Rule("credentials that pods name", "", ("secrets",), ("get",), when=_IMAGES),
    )
)
READER = Roles(
    (
        *_decided_from(),
        Rule("what each new node runs besides", "apps", ("daemonsets",), FOLLOW),
        Rule("whether a pod comes back", "batch", ("jobs",), FOLLOW),
        Rule("queues and gangs", "scheduling.volcano.sh", ("queues", "podgroups"), FOLLOW),
        Rule("groups that are declared", "bayplan.io", ("nodegroups",), FOLLOW),
        Rule("claimed devices", "resource.k8s.io", ("deviceclasses", "resourceclaims"), FOLLOW),
        Rule("whether two autoscalers are at work", "coordination.k8s.io", ("leases",), FOLLOW),
        Rule("webhooks that cannot answer", _REGISTRATION, _HOOKS, FOLLOW),
    )
)
BY_PART = {
    "scheduler": SCHEDULER,
    "autoscaler": AUTOSCALER,
    "autoscaler-clusterapi": Roles(CLUSTER_API),
    "webhook": WEBHOOK,
    "node-limits": NODE_LIMITS,
    "node-agent": NODE_AGENT,
    "reader": READER,
}


def account(name: str, labels: Node) -> Node:
    """A service account, with nothing that pods of others could use."""
    meta: Node = {"name": name, "namespace": Value(NAMESPACE), "labels": labels}
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta}


def granted(name: str, labels: Node, roles: Roles, to: str) -> list[Node]:
    """The roles, bound to a service account."""
    made: list[Node] = []
    if roles.cluster:
        made += [cluster_role(name, labels, roles.cluster), _bound("Cluster", name, labels, to)]
    if roles.own:
        own = [_role("", name, labels, roles.own), _bound("", name, labels, to)]
        # A role of which nothing may be left is not there at all then.
        hangs_on = {one.when for one in roles.own}
        only = hangs_on.pop() if len(hangs_on) == 1 else ""
        made += [When(only, one) for one in own] if only else own
    return made


def cluster_role(name: str, labels: Node, rules: tuple[Rule, ...]) -> Node:
    """A role of the whole cluster."""
    return _role("Cluster", name, labels, rules)


def _role(scope: str, name: str, labels: Node, rules: tuple[Rule, ...]) -> Node:
    return {
        "apiVersion": f"{RBAC}/v1",
        "kind": f"{scope}Role",
        "metadata": _meta(scope, name, labels),
        "rules": [one.node() for one in rules],
    }


def _bound(scope: str, name: str, labels: Node, to: str) -> Node:
    subject: Node = {"kind": "ServiceAccount", "name": to, "namespace": Value(NAMESPACE)}
    return {
        "apiVersion": f"{RBAC}/v1",
        "kind": f"{scope}RoleBinding",
        "metadata": _meta(scope, name, labels),
        "roleRef": {"apiGroup": RBAC, "kind": f"{scope}Role", "name": name},
        "subjects": [subject],
    }


def _meta(scope: str, name: str, labels: Node) -> Node:
    where: dict[str, Node] = {} if scope else {"namespace": Value(NAMESPACE)}
    return {"name": name, **where, "labels": labels}
