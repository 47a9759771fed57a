"""Grafana's dashboard, from a list of panels: what is full, who waits and why, what is done."""

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
    what: str
    targets: tuple[tuple[str, str], ...]
    unit: str = "short"


@dataclass(frozen=True, slots=True)
class Row:
    """Panels that belong together."""

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


ROWS = (
    Row(
        "Capacity",
        (
            Panel(
                "Volumes in use and limit",
                "Places for volumes by CSI driver: what is attached, and what nodes can attach.",
                (
                    (
                        "sum by (driver, state) (cluster_autoscaler_node_group_volumes_count)",
                        "{{driver}} {{state}}",
                    ),
                ),
            ),
            Panel(
                "Volumes beyond limits",
                "Volumes on nodes that have more than they can attach.",
                (("sum by (driver) (bayplan_scheduler_volumes_over_limit)", "{{driver}}"),),
            ),
            Panel(
                "Nodes by state",
                "How nodes stand, as the autoscaler counts them.",
                (("max by (state) (cluster_autoscaler_nodes_count)", "{{state}}"),),
            ),
            Panel(
                "Groups: wanted, least and most",
                "Nodes of each group.",
                (
                    ("max by (node_group) (cluster_autoscaler_node_group_target_count)",
                     "{{node_group}}"),
                    ("max by (node_group) (cluster_autoscaler_node_group_max_count)",
                     "{{node_group}} most"),
                ),
            ),
            Panel(
                "Nodes that wait for drivers",
                "Nodes that have not reported a CSI driver that was promised.",
                (
                    ("sum by (driver) (cluster_autoscaler_nodes_waiting_for_csi_drivers)",
                     "{{driver}}"),
                ),
            ),
        ),
    ),
    Row(
        "Waiting",
        (
            Panel(
                "Pods that wait, by cause",
                "Why pods wait, as the autoscaler sees it; for volumes, of which driver.",
                (
                    ("max by (cause, driver) (cluster_autoscaler_unschedulable_pods_count)",
                     "{{cause}} {{driver}}"),
                ),
            ),
            Panel(
                "Pods that wait, by plugin",
                "Which of the scheduler's rules refused.",
                (("sum by (plugin) (scheduler_unschedulable_pods)", "{{plugin}}"),),
            ),
            Panel(
                "Pods in the scheduler's queues",
                "Active, backing off, unschedulable and gated.",
                (("sum by (queue) (scheduler_pending_pods)", "{{queue}}"),),
            ),
            Panel(
                "From waiting to bound",
                "How long pods take from their first try to a node.",
                _quantiles("scheduler_pod_scheduling_sli_duration_seconds"),
                "s",
            ),
        ),
    ),
    Row(
        "What is done",
        (
            Panel(
                "Nodes bought and given back",
                "In an hour.",
                (
                    ("sum(increase(cluster_autoscaler_scaled_up_nodes_total[1h]))", "bought"),
                    ("sum by (reason) (increase(cluster_autoscaler_scaled_down_nodes_total[1h]))",
                     "given back: {{reason}}"),
                    ("sum by (reason) (increase(cluster_autoscaler_failed_scale_ups_total[1h]))",
                     "failed: {{reason}}"),
                ),
            ),
            Panel(
                "Placed and refused",
                "Attempts of the scheduler in a second.",
                (
                    ("sum by (result) (rate(scheduler_schedule_attempts_total[$__rate_interval]))",
                     "{{result}}"),
                ),
                "ops",
            ),
            Panel(
                "Gates taken away",
                "Pods of queues that were let in, in five minutes.",
                (
                    ("sum by (result) (increase(bayplan_scheduler_gate_removals_total[5m]))",
                     "{{result}}"),
                ),
                "ops",
            ),
            Panel(
                "Nodes that stay, by why",
                "Why nodes are not given back.",
                (("max by (reason) (cluster_autoscaler_unremovable_nodes_count)", "{{reason}}"),),
            ),
        ),
    ),
    Row(
        "Queues",
        (
            Panel(
                "Share",
                "How much of what it deserves each queue has.",
                (("max by (queue_name) (volcano_queue_share)", "{{queue_name}}"),),
                "percentunit",
            ),
            Panel(
                "Cores allocated and deserved",
                "In cores.",
                (
                    ("max by (queue_name) (volcano_queue_allocated_milli_cpu) / 1000",
                     "{{queue_name}}"),
                    ("max by (queue_name) (volcano_queue_deserved_milli_cpu) / 1000",
                     "{{queue_name}} deserved"),
                ),
            ),
            Panel(
                "Groups that wait",
                "Groups that have pods without a node.",
                (("max by (queue_name) (bayplan_queue_waiting_groups)", "{{queue_name}}"),),
            ),
        ),
    ),
    Row(
        "Health",
        (
            Panel(
                "The autoscaler's loop",
                "How long its parts take.",
                _quantiles("cluster_autoscaler_function_duration_seconds", "function"),
                "s",
            ),
            Panel(
                "The scheduler's decision",
                "Without binding.",
                _quantiles("scheduler_scheduling_algorithm_duration_seconds"),
                "s",
            ),
            Panel(
                "The webhook's answers",
                "From a request's head to its answer.",
                _quantiles("bayplan_webhook_request_duration_seconds", "path"),
                "s",
            ),
            Panel(
                "Errors",
                "In an hour.",
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
            Panel("Up", "Pods that answer.", ((f"sum by (job) (up{{{_JOBS}}})", "{{job}}"),)),
        ),
    ),
)  # fmt: skip


def dashboard() -> Json:
    """The dashboard as Grafana imports it, for any Prometheus."""
    return {
        "uid": "bayplan",
        "title": "Bayplan",
        "description": "What fits, who waits and why, what is bought and given back.",
        "tags": ["bayplan", "kubernetes"],
        "schemaVersion": 39,
        "version": 1,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "templating": {"list": [_choice()]},
        "annotations": {"list": []},
        "panels": _laid_out(),
    }


def dashboard_text() -> str:
    """The same as a file."""
    return f"{json.dumps(dashboard(), indent=2)}\n"


def _choice() -> Json:
    return {
        "name": "datasource",
        "label": "Prometheus",
        "type": "datasource",
        "query": "prometheus",
        "refresh": 1,
        "hide": 0,
    }


def _laid_out() -> list[Json]:
    made: list[Json] = []
    top = 0
    for row in ROWS:
        place: Json = {"x": 0, "y": top, "w": _COLUMNS, "h": 1}
        head: Json = {"type": "row", "title": row.title, "gridPos": place, "collapsed": False}
        made.append({"id": len(made) + 1, **head, "panels": []})
        top += 1
        for number, panel in enumerate(row.panels):
            across, down = number % (_COLUMNS // _WIDTH), number // (_COLUMNS // _WIDTH)
            made.append(_drawn(panel, len(made) + 1, across * _WIDTH, top + down * _HEIGHT))
        top += -(-len(row.panels) // (_COLUMNS // _WIDTH)) * _HEIGHT
    return made


def _drawn(panel: Panel, number: int, x: int, y: int) -> Json:
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
        "description": panel.what,
        "datasource": _SOURCE,
        "gridPos": {"x": x, "y": y, "w": _WIDTH, "h": _HEIGHT},
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
        "options": {
            "legend": {"displayMode": "list", "placement": "bottom", "showLegend": True},
            "tooltip": {"mode": "multi", "sort": "desc"},
        },
        "targets": targets,
    }
