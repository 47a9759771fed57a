"""What operators are told of: which pods are scraped, what wakes somebody up, and a dashboard.

Every metric that is named here exists; a test asks the daemons' own registries.
"""

from __future__ import annotations

from dataclasses import dataclass

from bayplan.deploy.dashboard import dashboard_text
from bayplan.deploy.holes import NAMESPACE, SPREAD, File, Node, Value, When
from bayplan.deploy.workloads import METRICS, Daemon, chosen, labels

_API = "monitoring.coreos.com/v1"
RULES = "bayplan"


@dataclass(frozen=True, slots=True)
class Alert:
    """Something that is wrong for so long, and what to do about it."""

    name: str
    expr: str
    lasts: str
    severity: str
    summary: str
    what_to_do: str

    def node(self) -> Node:
        """The alert as Prometheus has it."""
        return {
            "alert": self.name,
            "expr": self.expr,
            "for": self.lasts,
            "labels": {"severity": self.severity},
            "annotations": {"summary": self.summary, "description": self.what_to_do},
        }


_SCHEDULER = 'job="bayplan-scheduler"'
ALERTS = (
    Alert(
        "BayplanDown",
        'up{job=~"bayplan-.*"} == 0',
        "10m",
        "warning",
        "{{ $labels.pod }} of {{ $labels.job }} does not answer.",
        "Look at the pod's events and logs; another replica leads meanwhile, if there is one.",
    ),
    Alert(
        "BayplanSchedulerGone",
        f"absent(up{{{_SCHEDULER}}} == 1)",
        "5m",
        "critical",
        "No replica of Bayplan's scheduler answers: its pods stay pending.",
        "kubectl describe deployment bayplan-scheduler, and the pods' logs, say why.",
    ),
    Alert(
        "BayplanPodsRefused",
        f"sum by (plugin) (scheduler_unschedulable_pods{{{_SCHEDULER}}}) > 0",
        "30m",
        "warning",
        "{{ $value }} pods wait, refused by {{ $labels.plugin }}.",
        "`bayplan explain --all-pending` says why, and what would help.",
    ),
    Alert(
        "BayplanSchedulingSlow",
        "histogram_quantile(0.99, sum by (le)"
        f" (rate(scheduler_scheduling_attempt_duration_seconds_bucket{{{_SCHEDULER}}}[10m]))) > 5",
        "15m",
        "warning",
        "One attempt in a hundred to place a pod takes longer than 5 s.",
        "Compare the decision's own time in the dashboard: if it is short, the API server is slow.",
    ),
    Alert(
        "BayplanGateSkew",
        "max(bayplan_scheduler_volume_limit_scaling_skew) == 1",
        "15m",
        "warning",
        "The scheduler holds pods back for CSI drivers, and the autoscaler does not know it.",
        "Set VolumeLimitScaling alike in both.",
    ),
    Alert(
        "BayplanVolumesOverLimit",
        "sum by (driver) (bayplan_scheduler_volumes_over_limit) > 0",
        "15m",
        "warning",
        "{{ $value }} volumes of {{ $labels.driver }} are beyond their nodes' limits.",
        "`bayplan volumes --over 100%` names the nodes.",
    ),
    Alert(
        "BayplanUnreadableAttachLimits",
        "sum by (key) (bayplan_scheduler_unreadable_attach_limits) > 0",
        "15m",
        "warning",
        "{{ $value }} nodes publish something under {{ $labels.key }} that cannot be a limit.",
        "Events of the nodes name the value; whoever writes it is wrong.",
    ),
    Alert(
        "BayplanObjectsSetAside",
        "sum by (kind) (bayplan_scheduler_set_aside_objects) > 0",
        "15m",
        "warning",
        "{{ $value }} objects of kind {{ $labels.kind }} cannot be used.",
        "The scheduler's log names each, its field and its value.",
    ),
    Alert(
        "BayplanAutoscalerGone",
        'absent(up{job="bayplan-autoscaler"} == 1)',
        "5m",
        "critical",
        "No replica of Bayplan's autoscaler answers: no node is bought or given back.",
        "kubectl describe deployment bayplan-autoscaler, and the pods' logs, say why.",
    ),
    Alert(
        "BayplanAutoscalerStuck",
        'time() - max(cluster_autoscaler_last_activity{activity="main"}) > 600',
        "5m",
        "critical",
        "The autoscaler's last loop ended more than ten minutes ago.",
        "Its log says what it waits for; most often the cloud.",
    ),
    Alert(
        "BayplanClusterUnsafe",
        "max(cluster_autoscaler_cluster_safe_to_autoscale) == 0",
        "15m",
        "warning",
        "Too many nodes are unready: nothing is bought or given back.",
        "See --max-total-unready-percentage, and why the nodes are unready.",
    ),
    Alert(
        "BayplanAutoscalerErrors",
        "sum by (type) (increase(cluster_autoscaler_errors_total[15m])) > 3",
        "15m",
        "warning",
        "The autoscaler's loops fail: {{ $labels.type }}.",
        "Its log has the sentence of each.",
    ),
    Alert(
        "BayplanScaleUpFails",
        "sum by (reason) (increase(cluster_autoscaler_failed_scale_ups_total[30m])) > 0",
        "5m",
        "warning",
        "Nodes could not be bought: {{ $labels.reason }}.",
        "The ConfigMap cluster-autoscaler-status says which groups rest, and why.",
    ),
    Alert(
        "BayplanDriverMissing",
        "sum by (node_group, driver) (cluster_autoscaler_nodes_waiting_for_csi_drivers) > 0",
        "20m",
        "warning",
        "Nodes of {{ $labels.node_group }} do not report {{ $labels.driver }}.",
        "Look at the driver's DaemonSet there; its pods wait for it.",
    ),
    Alert(
        "BayplanWebhookCertificateEnds",
        "min((bayplan_webhook_certificate_expiry_seconds > 0) - time()) < 604800",
        "1h",
        "critical",
        "The webhook's certificate ends within a week, and was not renewed.",
        "Without cert-manager the webhook renews it; its log says what hinders it.",
    ),
    Alert(
        "BayplanWebhookErrors",
        'sum by (path) (rate(bayplan_webhook_requests_total{code=~"5.."}[10m])) > 0',
        "10m",
        "warning",
        "The webhook answers {{ $labels.path }} with errors.",
        "Its log has the sentence of each.",
    ),
    Alert(
        "BayplanAttachLimitErrors",
        "sum by (kind, reason) (increase(bayplan_attach_limit_errors_total[30m])) > 3",
        "10m",
        "warning",
        "Attach limits cannot be published: {{ $labels.kind }}, {{ $labels.reason }}.",
        "Forbidden is a matter of the agent's role; others are in its log.",
    ),
    Alert(
        "BayplanAttachLimitsContested",
        "max(bayplan_attach_limit_contested) > 0",
        "30m",
        "warning",
        "Somebody else keeps changing the attach limits of {{ $value }} nodes.",
        "Run one agent of limits: node-limits, or node-agent --limits.",
    ),
    Alert(
        "BayplanImageCleanUpOwed",
        "max by (pod) (bayplan_node_images_clean_up_owed) == 1",
        "1h",
        "warning",
        "The gate RuntimeClassInImageCriApi was switched, and images of {{ $labels.pod }}'s node"
        " may be the wrong ones.",
        "`bayplan images reset --node NAME` on that node settles it.",
    ),
)


def service_monitor(daemon: Daemon) -> Node:
    """Prometheus scrapes a daemon's pods."""
    meta = _meta(daemon.name, daemon.component)
    endpoint: Node = {"port": METRICS, "interval": Value("monitoring.interval")}
    spec: Node = {
        "endpoints": [endpoint],
        "selector": {"matchLabels": chosen(daemon.component)},
    }
    return {"apiVersion": _API, "kind": "ServiceMonitor", "metadata": meta, "spec": spec}


def rules() -> Node:
    """All alerts."""
    group: Node = {"name": RULES, "rules": [one.node() for one in ALERTS]}
    meta = _meta(RULES, "monitoring")
    spec: Node = {"groups": [group]}
    return {"apiVersion": _API, "kind": "PrometheusRule", "metadata": meta, "spec": spec}


def dashboard_map() -> Node:
    """The dashboard, where Grafana's sidecar finds it."""
    whose: Node = {**labels("monitoring"), "grafana_dashboard": "1"}
    meta: Node = {"name": "bayplan-dashboard", "namespace": Value(NAMESPACE), "labels": whose}
    data: Node = {"bayplan.json": File("dashboard.json", dashboard_text())}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}


def _meta(name: str, component: str) -> Node:
    found_by = {**labels(component), SPREAD: When("monitoring.labels")}
    return {"name": name, "namespace": Value(NAMESPACE), "labels": found_by}
