"""Monitoring: ServiceMonitors, alerting rules, and the ConfigMap of the Grafana dashboard.

Every metric used here exists; a test checks it against the daemons' own metric registries.
"""

from __future__ import annotations

from dataclasses import dataclass

from bayplan.deploy.dashboard import dashboard_text
from bayplan.deploy.templates import (
    NAMESPACE,
    SPREAD,
    ChartFile,
    Conditional,
    TemplateNode,
    ValueRef,
)
from bayplan.deploy.workloads import METRICS, Daemon, labels, selector_labels

_API = "monitoring.coreos.com/v1"
RULES = "bayplan"


@dataclass(frozen=True, slots=True)
class Alert:
    """An alert: its expression, how long it must hold, and what to do about it."""

    name: str
    expr: str
    duration: str
    severity: str
    summary: str
    action: str

    def node(self) -> TemplateNode:
        """Return the alert as an alerting rule of Prometheus."""
        return {
            "alert": self.name,
            "expr": self.expr,
            "for": self.duration,
            "labels": {"severity": self.severity},
            "annotations": {"summary": self.summary, "description": self.action},
        }


_SCHEDULER = 'job="bayplan-scheduler"'
ALERTS = (
    Alert(
        "BayplanDown",
        'up{job=~"bayplan-.*"} == 0',
        "10m",
        "warning",
        "Pod {{ $labels.pod }} of {{ $labels.job }} does not respond.",
        "Check the pod's events and logs; another replica leads meanwhile, if there is one.",
    ),
    Alert(
        "BayplanSchedulerGone",
        f"absent(up{{{_SCHEDULER}}} == 1)",
        "5m",
        "critical",
        "No replica of Bayplan's scheduler responds: its pods stay pending.",
        "Run kubectl describe deployment bayplan-scheduler, and read the pods' logs.",
    ),
    Alert(
        "BayplanPodsRefused",
        f"sum by (plugin) (scheduler_unschedulable_pods{{{_SCHEDULER}}}) > 0",
        "30m",
        "warning",
        "{{ $value }} pods are unschedulable because of plugin {{ $labels.plugin }}.",
        "Run `bayplan explain --all-pending`: it shows the reasons and possible fixes.",
    ),
    Alert(
        "BayplanSchedulingSlow",
        "histogram_quantile(0.99, sum by (le)"
        f" (rate(scheduler_scheduling_attempt_duration_seconds_bucket{{{_SCHEDULER}}}[10m]))) > 5",
        "15m",
        "warning",
        "The 99th percentile of the scheduling attempt duration is over 5 s.",
        "Compare the algorithm duration in the dashboard: if it is short, the API server is slow.",
    ),
    Alert(
        "BayplanGateSkew",
        "max(bayplan_scheduler_volume_limit_scaling_skew) == 1",
        "15m",
        "warning",
        "The feature gate VolumeLimitScaling differs between scheduler and autoscaler.",
        "Set VolumeLimitScaling to the same value in both.",
    ),
    Alert(
        "BayplanVolumesOverLimit",
        "sum by (driver) (bayplan_scheduler_volumes_over_limit) > 0",
        "15m",
        "warning",
        "{{ $value }} volumes of {{ $labels.driver }} exceed the attach limits of their nodes.",
        "Run `bayplan volumes --over 100%` to list the nodes.",
    ),
    Alert(
        "BayplanUnreadableAttachLimits",
        "sum by (key) (bayplan_scheduler_unreadable_attach_limits) > 0",
        "15m",
        "warning",
        "{{ $value }} nodes publish an invalid attach limit under {{ $labels.key }}.",
        "See the value in the nodes' events, and correct the agent that publishes it.",
    ),
    Alert(
        "BayplanObjectsSetAside",
        "sum by (kind) (bayplan_scheduler_set_aside_objects) > 0",
        "15m",
        "warning",
        "{{ $value }} objects of kind {{ $labels.kind }} are invalid and ignored.",
        "See the scheduler's log for each object, its field and its value.",
    ),
    Alert(
        "BayplanAutoscalerGone",
        'absent(up{job="bayplan-autoscaler"} == 1)',
        "5m",
        "critical",
        "No replica of Bayplan's autoscaler responds: node groups are not scaled.",
        "Run kubectl describe deployment bayplan-autoscaler, and read the pods' logs.",
    ),
    Alert(
        "BayplanAutoscalerStuck",
        'time() - max(cluster_autoscaler_last_activity{activity="main"}) > 600',
        "5m",
        "critical",
        "The autoscaler's last loop ended more than ten minutes ago.",
        "See in its log what it is waiting for; most often the cloud provider.",
    ),
    Alert(
        "BayplanClusterUnsafe",
        "max(cluster_autoscaler_cluster_safe_to_autoscale) == 0",
        "15m",
        "warning",
        "Too many nodes are unready: node groups are not scaled.",
        "Find out why the nodes are unready; --max-total-unready-percentage is the threshold.",
    ),
    Alert(
        "BayplanAutoscalerErrors",
        "sum by (type) (increase(cluster_autoscaler_errors_total[15m])) > 3",
        "15m",
        "warning",
        "The autoscaler's loops fail with errors of type {{ $labels.type }}.",
        "See the errors in its log.",
    ),
    Alert(
        "BayplanScaleUpFails",
        "sum by (reason) (increase(cluster_autoscaler_failed_scale_ups_total[30m])) > 0",
        "5m",
        "warning",
        "Scale-ups failed: {{ $labels.reason }}.",
        "See in the ConfigMap cluster-autoscaler-status which node groups are backed off, and why.",
    ),
    Alert(
        "BayplanDriverMissing",
        "sum by (node_group, driver) (cluster_autoscaler_nodes_waiting_for_csi_drivers) > 0",
        "20m",
        "warning",
        "CSI driver {{ $labels.driver }} has not registered on nodes of group"
        " {{ $labels.node_group }}.",
        "Check the driver's DaemonSet on these nodes.",
    ),
    Alert(
        "BayplanWebhookCertificateEnds",
        "min((bayplan_webhook_certificate_expiry_seconds > 0) - time()) < 604800",
        "1h",
        "critical",
        "The webhook's certificate expires within a week and was not renewed.",
        "Without cert-manager the webhook renews it: see its log. Else see cert-manager's.",
    ),
    Alert(
        "BayplanWebhookErrors",
        'sum by (path) (rate(bayplan_webhook_requests_total{code=~"5.."}[10m])) > 0',
        "10m",
        "warning",
        "The webhook responds to {{ $labels.path }} with errors.",
        "See the errors in its log.",
    ),
    Alert(
        "BayplanAttachLimitErrors",
        "sum by (kind, reason) (increase(bayplan_attach_limit_errors_total[30m])) > 3",
        "10m",
        "warning",
        "Attach limits cannot be published: {{ $labels.kind }}, {{ $labels.reason }}.",
        "Forbidden: check the agent's role. For other reasons see the agent's log.",
    ),
    Alert(
        "BayplanAttachLimitsContested",
        "max(bayplan_attach_limit_contested) > 0",
        "30m",
        "warning",
        "Another client keeps changing the attach limits of {{ $value }} nodes.",
        "Run only one of node-limits and node-agent --limits.",
    ),
    Alert(
        "BayplanImageCleanUpOwed",
        "max by (pod) (bayplan_node_images_clean_up_owed) == 1",
        "1h",
        "warning",
        "The feature gate RuntimeClassInImageCriApi was changed, and images on the node of pod"
        " {{ $labels.pod }} may be of the wrong platform.",
        "Run `bayplan images reset --node NAME` on that node.",
    ),
)


def service_monitor(daemon: Daemon) -> TemplateNode:
    """Return the ServiceMonitor of a daemon."""
    meta = _meta(daemon.name, daemon.component)
    endpoint: TemplateNode = {"port": METRICS, "interval": ValueRef("monitoring.interval")}
    spec: TemplateNode = {
        "endpoints": [endpoint],
        "selector": {"matchLabels": selector_labels(daemon.component)},
    }
    return {"apiVersion": _API, "kind": "ServiceMonitor", "metadata": meta, "spec": spec}


def alert_rules() -> TemplateNode:
    """Return the PrometheusRule with all alerts."""
    group: TemplateNode = {"name": RULES, "rules": [one.node() for one in ALERTS]}
    meta = _meta(RULES, "monitoring")
    spec: TemplateNode = {"groups": [group]}
    return {"apiVersion": _API, "kind": "PrometheusRule", "metadata": meta, "spec": spec}


def dashboard_map() -> TemplateNode:
    """Return the ConfigMap of the dashboard, with the label that Grafana's sidecar looks for."""
    own: TemplateNode = {**labels("monitoring"), "grafana_dashboard": "1"}
    meta: TemplateNode = {
        "name": "bayplan-dashboard",
        "namespace": ValueRef(NAMESPACE),
        "labels": own,
    }
    data: TemplateNode = {"bayplan.json": ChartFile("dashboard.json", dashboard_text())}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}


def _meta(name: str, component: str) -> TemplateNode:
    own = {**labels(component), SPREAD: Conditional("monitoring.labels")}
    return {"name": name, "namespace": ValueRef(NAMESPACE), "labels": own}
