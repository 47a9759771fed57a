"""Grafana's dashboard, from a list of panels: capacity, pending pods, actions, queues, health."""

from __future__ import annotations

import json
from dataclasses import dataclass

Json = dict[str, object]
_SOURCE: Json = {"type": "prometheus", "uid": "${datasource}"}
_WIDTH, _HEIGHT, _COLUMNS = 8, 8, 24
_JOBS = 'job=~"bayplan-.*"'


@dataclass(frozen=True, slots=True)
class Panel:
    """A graph of some expressions, each with its legend."""

    title: str
    description: str
    targets: tuple[tuple[str, str], ...]
    unit: str = "short"


@dataclass(frozen=True, slots=True)
class PanelRow:
    """A titled row of panels."""

    title: str
    panels: tuple[Panel, ...]


def _quantiles(metric: str, by: str = "") -> tuple[tuple[str, str], ...]:
    held = f"le, {by}" if by else "le"
    named = f" {{{{{by}}}}}" if by else ""
    rate = f"sum by ({held}) (rate({metric}_bucket[$__rate_interval]))"
    return tuple(
        (f"histogram_quantile({quantile}, {rate})", f"p{int(quantile * 100)}{named}")
        for quantile in (0.5, 0.99)
    )


PANEL_ROWS = (
    PanelRow(
        "Capacity",
        (
            Panel(
                "Volumes in use and limit",
                "Attached volumes and attach limits by CSI driver.",
                (
                    (
                        "sum by (driver, state) (cluster_autoscaler_node_group_volumes_count)",
                        "{{driver}} {{state}}",
                    ),
                ),
            ),
            Panel(
                "Volumes over the limit",
                "Volumes attached beyond their node's attach limit.",
                (("sum by (driver) (bayplan_scheduler_volumes_over_limit)", "{{driver}}"),),
            ),
            Panel(
                "Nodes by state",
                "Nodes by state, as the autoscaler counts them.",
                (("max by (state) (cluster_autoscaler_nodes_count)", "{{state}}"),),
            ),
            Panel(
                "Node group sizes",
                "Target and maximum size of each node group.",
                (
                    ("max by (node_group) (cluster_autoscaler_node_group_target_count)",
                     "{{node_group}}"),
                    ("max by (node_group) (cluster_autoscaler_node_group_max_count)",
                     "{{node_group}} max"),
                ),
            ),
            Panel(
                "Nodes waiting for CSI drivers",
                "Nodes on which an expected CSI driver has not registered yet.",
                (
                    ("sum by (driver) (cluster_autoscaler_nodes_waiting_for_csi_drivers)",
                     "{{driver}}"),
                ),
            ),
        ),
    ),
    PanelRow(
        "Pending pods",
        (
            Panel(
                "Unschedulable pods by cause",
                "Unschedulable pods by cause, as the autoscaler sees them; for volumes, by driver.",
                (
                    ("max by (cause, driver) (cluster_autoscaler_unschedulable_pods_count)",
                     "{{cause}} {{driver}}"),
                ),
            ),
            Panel(
                "Unschedulable pods by plugin",
                "Unschedulable pods by the scheduler plugin that rejected them.",
                (("sum by (plugin) (scheduler_unschedulable_pods)", "{{plugin}}"),),
            ),
            Panel(
                "Pods in the scheduler's queues",
                "Active, backing off, unschedulable and gated.",
                (("sum by (queue) (scheduler_pending_pods)", "{{queue}}"),),
            ),
            Panel(
                "Scheduling latency",
                "Time from a pod's first scheduling attempt until it is bound.",
                _quantiles("scheduler_pod_scheduling_sli_duration_seconds"),
                "s",
            ),
        ),
    ),
    PanelRow(
        "Actions",
        (
            Panel(
                "Nodes added and removed",
                "Per hour.",
                (
                    ("sum(increase(cluster_autoscaler_scaled_up_nodes_total[1h]))", "added"),
                    ("sum by (reason) (increase(cluster_autoscaler_scaled_down_nodes_total[1h]))",
                     "removed: {{reason}}"),
                    ("sum by (reason) (increase(cluster_autoscaler_failed_scale_ups_total[1h]))",
                     "failed: {{reason}}"),
                ),
            ),
            Panel(
                "Scheduling attempts",
                "Scheduling attempts per second, by result.",
                (
                    ("sum by (result) (rate(scheduler_schedule_attempts_total[$__rate_interval]))",
                     "{{result}}"),
                ),
                "ops",
            ),
            Panel(
                "Scheduling gates removed",
                "Pods of queues that were ungated, per five minutes.",
                (
                    ("sum by (result) (increase(bayplan_scheduler_gate_removals_total[5m]))",
                     "{{result}}"),
                ),
                "ops",
            ),
            Panel(
                "Unremovable nodes by reason",
                "Nodes that the autoscaler does not remove, by reason.",
                (("max by (reason) (cluster_autoscaler_unremovable_nodes_count)", "{{reason}}"),),
            ),
        ),
    ),
    PanelRow(
        "Queues",
        (
            Panel(
                "Share",
                "Allocated resources of each queue relative to what it deserves.",
                (("max by (queue_name) (volcano_queue_share)", "{{queue_name}}"),),
                "percentunit",
            ),
            Panel(
                "CPU allocated and deserved",
                "In cores, by queue.",
                (
                    ("max by (queue_name) (volcano_queue_allocated_milli_cpu) / 1000",
                     "{{queue_name}}"),
                    ("max by (queue_name) (volcano_queue_deserved_milli_cpu) / 1000",
                     "{{queue_name}} deserved"),
                ),
            ),
            Panel(
                "Waiting pod groups",
                "Pod groups with pods that have no node.",
                (("max by (queue_name) (bayplan_queue_waiting_groups)", "{{queue_name}}"),),
            ),
        ),
    ),
    PanelRow(
        "Health",
        (
            Panel(
                "Autoscaler loop duration",
                "Duration of the functions of the autoscaler's loop.",
                _quantiles("cluster_autoscaler_function_duration_seconds", "function"),
                "s",
            ),
            Panel(
                "Scheduling algorithm duration",
                "Duration of scheduling decisions, without binding.",
                _quantiles("scheduler_scheduling_algorithm_duration_seconds"),
                "s",
            ),
            Panel(
                "Webhook request duration",
                "From a request's headers to its response.",
                _quantiles("bayplan_webhook_request_duration_seconds", "path"),
                "s",
            ),
            Panel(
                "Errors",
                "Per hour.",
                (
                    ("sum by (type) (increase(cluster_autoscaler_errors_total[1h]))",
                     "autoscaler: {{type}}"),
                    ('sum by (code) (increase(bayplan_webhook_requests_total{code=~"5.."}[1h]))',
                     "webhook: {{code}}"),
                    ("sum by (reason) (increase(bayplan_attach_limit_errors_total[1h]))",
                     "attach limits: {{reason}}"),
                    ("sum by (kind) (bayplan_scheduler_set_aside_objects)", "set aside: {{kind}}"),
                ),
            ),
            Panel("Up", "Pods that respond.", ((f"sum by (job) (up{{{_JOBS}}})", "{{job}}"),)),
        ),
    ),
)  # fmt: skip


def dashboard() -> Json:
    """Return the dashboard as Grafana imports it, for any Prometheus."""
    return {
        "uid": "bayplan",
        "title": "Bayplan",
        "description": "Capacity, pending pods and their causes, scale-ups and scale-downs.",
        "tags": ["bayplan", "kubernetes"],
        "schemaVersion": 39,
        "version": 1,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "templating": {"list": [_datasource_variable()]},
        "annotations": {"list": []},
        "panels": _panels(),
    }


def dashboard_text() -> str:
    """Return the dashboard as the text of its JSON file."""
    return f"{json.dumps(dashboard(), indent=2)}\n"


def _datasource_variable() -> Json:
    return {
        "name": "datasource",
        "label": "Prometheus",
        "type": "datasource",
        "query": "prometheus",
        "refresh": 1,
        "hide": 0,
    }


def _panels() -> list[Json]:
    """Return all panels with their positions."""
    made: list[Json] = []
    top = 0
    for row in PANEL_ROWS:
        place: Json = {"x": 0, "y": top, "w": _COLUMNS, "h": 1}
        head: Json = {"type": "row", "title": row.title, "gridPos": place, "collapsed": False}
        made.append({"id": len(made) + 1, **head, "panels": []})
        top += 1
        for number, panel in enumerate(row.panels):
            across, down = number % (_COLUMNS // _WIDTH), number // (_COLUMNS // _WIDTH)
            made.append(_panel(panel, len(made) + 1, across * _WIDTH, top + down * _HEIGHT))
        top += -(-len(row.panels) // (_COLUMNS // _WIDTH)) * _HEIGHT
    return made


def _panel(panel: Panel, number: int, x: int, y: int) -> Json:
    targets: list[Json] = [
        {
            "refId": chr(ord("A") + index),
            "datasource": _SOURCE,
            "expr": expr,
            "legendFormat": legend,
        }
        for index, (expr, legend) in enumerate(panel.targets)
    ]
    return {
        "id": number,
        "type": "timeseries",
        "title": panel.title,
        "description": panel.description,
        "datasource": _SOURCE,
        "gridPos": {"x": x, "y": y, "w": _WIDTH, "h": _HEIGHT},
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
        "options": {
            "legend": {"displayMode": "list", "placement": "bottom", "showLegend": True},
            "tooltip": {"mode": "multi", "sort": "desc"},
        },
        "targets": targets,
    }
