"""Alerts and the dashboard ask for nothing that no daemon counts."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from bayplan.admission.metrics import AdmissionMetrics
from bayplan.autoscaler.daemon import AutoscalerDaemon
from bayplan.deploy.components import DAEMONS
from bayplan.deploy.dashboard import dashboard
from bayplan.deploy.prometheus import ALERTS
from bayplan.images.manager.metrics import ImageMetrics
from bayplan.node.metrics import LimitMetrics
from bayplan.scheduler.config import default_settings
from bayplan.scheduler.daemon import SchedulerDaemon
from tests.deploy.manifests import DEPLOY, made

pytestmark = pytest.mark.whole


OF_PROMETHEUS = {"up"}
WORDS = {"sum", "max", "min", "rate", "increase", "histogram_quantile", "absent", "time", "by"}
SUFFIXES = {"counter": ("_total",), "histogram": ("_bucket", "_count", "_sum"), "gauge": ("",)}


def counted() -> set[str]:
    """All names that our daemons expose."""

    @asynccontextmanager
    async def no_cloud(_: Any) -> Any:
        yield None

    registry = CollectorRegistry()
    for make in (AdmissionMetrics, ImageMetrics, LimitMetrics):
        make(registry)
    SchedulerDaemon(default_settings(), registry=registry)
    AutoscalerDaemon(no_cloud, registry=registry)
    return {
        one.name + suffix for one in registry.collect() for suffix in SUFFIXES.get(one.type, ("",))
    }


def expressions() -> Iterator[tuple[str, str]]:
    for alert in ALERTS:
        yield alert.name, alert.expr
    panels: Any = dashboard()["panels"]
    for panel in panels:
        for target in panel.get("targets", ()):
            yield panel["title"], target["expr"]


def metrics_of(expression: str) -> set[str]:
    bare = re.sub(r"\{[^}]*\}|\[[^\]]*\]|\bby \([^)]*\)", " ", expression)
    return set(re.findall(r"[a-zA-Z_:][\w:]*", bare)) - WORDS


@pytest.mark.parametrize(("where", "expression"), list(expressions()))
def test_every_metric_that_is_asked_for_is_counted(where: str, expression: str) -> None:
    assert metrics_of(expression), where
    assert metrics_of(expression) <= counted() | OF_PROMETHEUS


def test_every_metric_that_is_counted_is_in_the_reference() -> None:
    page = (DEPLOY.parent / "docs" / "reference" / "metrics.md").read_text()
    listed = set(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE))
    series = re.compile(r"_(bucket|count|sum)$")
    assert not {one for one in counted() if one not in listed and series.sub("", one) not in listed}


def test_every_query_is_whole() -> None:
    """Its brackets pair up, and its functions are some that Prometheus has."""
    for where, expression in expressions():
        bare = re.sub(r'"[^"]*"', "", expression)
        for _ in range(20):
            bare = re.sub(r"\([^(){}\[\]]*\)|\{[^(){}\[\]]*\}|\[(?:\d+[smhd]|\$__\w+)\]", "", bare)
        assert not set(bare) & set("(){}[]"), where
        assert set(re.findall(r"\b([a-z_]+) ?\(", expression)) <= WORDS, where


def test_the_names_are_really_looked_up() -> None:
    assert metrics_of('sum by (a) (rate(no_such_total{a="b"}[5m])) > 0') == {"no_such_total"}
    assert "no_such_total" not in counted()


def test_every_alert_is_named_once_and_says_action() -> None:
    assert len({one.name for one in ALERTS}) == len(ALERTS)
    for alert in ALERTS:
        assert alert.severity in {"warning", "critical"}
        assert alert.summary.endswith(".")
        assert alert.action.endswith(".")


def test_the_dashboard_can_be_imported_anywhere() -> None:
    """Each panel has its own number and place, and asks whichever Prometheus is chosen."""
    found = json.loads((DEPLOY / "grafana" / "bayplan.json").read_text())
    panels = found["panels"]
    assert len({one["id"] for one in panels}) == len(panels)
    taken = [
        (one["gridPos"]["x"] + x, one["gridPos"]["y"] + y)
        for one in panels
        for x in range(one["gridPos"]["w"])
        for y in range(one["gridPos"]["h"])
    ]
    assert len(set(taken)) == len(taken)
    assert max(x for x, _ in taken) < 24
    sources = {one["datasource"]["uid"] for one in panels if one["type"] != "row"}
    assert sources == {"${datasource}"}
    assert [one["name"] for one in found["templating"]["list"]] == ["datasource"]


def test_every_daemon_is_scraped_where_it_serves_its_metrics() -> None:
    on: dict[str, Any] = {"nodeLimits": {"enabled": True}, "nodeAgent": {"enabled": True}}
    everything = made("scheduler", "autoscaler", "webhook", "node-limits", "node-agent", **on)
    services = [one for one in everything if one["kind"] == "Service"]
    monitors = [one for one in made("monitoring", **on) if one["kind"] == "ServiceMonitor"]
    assert len(monitors) == len(DAEMONS)
    for monitor in monitors:
        wanted = monitor["spec"]["selector"]["matchLabels"].items()
        (service,) = [one for one in services if wanted <= one["metadata"]["labels"].items()]
        ports = {one["name"] for one in service["spec"]["ports"]}
        assert {one["port"] for one in monitor["spec"]["endpoints"]} <= ports
