"""The reference pages: configuration and metrics, from the types and the registries themselves."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

from prometheus_client import CollectorRegistry, Metric
from prometheus_client.registry import Collector

from bayplan.admission.metrics import AdmissionMetrics
from bayplan.autoscaler.metrics import AutoscalerMetrics, ScaleDownMetrics
from bayplan.autoscaler.options import (
    LoopOptions,
    ReadinessOptions,
    ScaleDownOptions,
    ScaleUpOptions,
)
from bayplan.autoscaler.providers.declared.declaration import GroupSection
from bayplan.autoscaler.providers.options import ProviderOptions
from bayplan.client.config.kubeconfig import KubeConfig
from bayplan.embedded.simulation.clusterfile.cluster import ClusterFile
from bayplan.images.credentials.providers.config import CredentialProviderConfig
from bayplan.images.cri.metrics import CriMetrics
from bayplan.images.handlers import build_handlers
from bayplan.images.manager.metrics import ImageMetrics
from bayplan.images.platforms import Platform
from bayplan.images.registry.hosts import HostsFile
from bayplan.images.settings import ContainerdFile
from bayplan.images.store.store import ImageStore
from bayplan.kube.attachtables import LimitsSection
from bayplan.node.metrics import LimitMetrics
from bayplan.observe.limitwatch import LimitCollector
from bayplan.scheduler.batch.metrics import QueueMetrics
from bayplan.scheduler.config import wire
from bayplan.scheduler.config.plugins import RECORDS
from bayplan.scheduler.metrics import SchedulerMetrics
from tests.docs import chart_values
from tests.docs.flags import flags
from tests.docs.help_pages import BEGIN
from tests.docs.types import tables

FOLDER = Path(__file__).parents[2] / "docs" / "reference"


def pages() -> dict[Path, str]:
    """Each page, and what is generated of it."""
    return {
        FOLDER / "scheduler.md": _scheduler(),
        FOLDER / "autoscaler.md": _autoscaler(),
        FOLDER / "groups.md": tables(GroupSection),
        FOLDER / "limits.md": tables(LimitsSection),
        FOLDER / "cluster-file.md": tables(ClusterFile),
        FOLDER / "kubeconfig.md": tables(KubeConfig),
        FOLDER / "metrics.md": _metrics(),
        FOLDER / "webhook.md": flags("webhook"),
        FOLDER / "node-agent.md": f"{flags('node-agent')}\n{_file(CredentialProviderConfig)}",
        FOLDER / "containerd.md": _containerd(),
        FOLDER / "values.md": chart_values.table(),
    }


def page_with_reference(path: Path, generated: str) -> str:
    """The page with its generated part renewed."""
    by_hand, marker, _ = path.read_text().partition(BEGIN)
    if not marker:
        raise ValueError(f"{path} has no line {BEGIN}")
    return f"{by_hand}{BEGIN}\n\n{generated}"


def _file(root: type) -> str:
    return f"## {root.__name__}\n\n{tables(root)}"


def _containerd() -> str:
    config = f"## config.toml\n\n{tables(ContainerdFile)}"
    return f"{flags('cri')}\n{config}\n## hosts.toml\n\n{tables(HostsFile)}"


def _scheduler() -> str:
    arguments = (one.arguments for one in RECORDS.values())
    plugins = "\n".join(tables(one.wire) for one in arguments if one is not None)
    file = f"## The file\n\n{tables(wire.Configuration)}\n## Arguments of plugins\n\n{plugins}"
    return f"{file}\n{flags('scheduler')}"


def _autoscaler() -> str:
    options = (ProviderOptions, LoopOptions, ScaleUpOptions, ReadinessOptions, ScaleDownOptions)
    by_kind = "\n".join(tables(one, _flag) for one in options)
    return f"{by_kind}\n{flags('autoscaler', by_kind)}"


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def registries() -> dict[str, CollectorRegistry]:
    """A registry for each daemon, filled as the daemon does."""
    made = {
        name: CollectorRegistry() for name in ("scheduler", "autoscaler", "webhook", "node-agent")
    }
    scheduler = made["scheduler"]
    none: dict[str, float] = {"": 0.0}
    SchedulerMetrics(scheduler).read(
        pending=lambda: none,
        unschedulable=lambda: none,
        cached=lambda: none,
        set_aside=lambda: none,
    )
    scheduler.register(QueueMetrics(lambda: None))
    scheduler.register(LimitCollector("bayplan_scheduler", lambda: None))
    AutoscalerMetrics(made["autoscaler"])
    ScaleDownMetrics(made["autoscaler"])
    made["autoscaler"].register(LimitCollector("bayplan_autoscaler", lambda: None))
    AdmissionMetrics(made["webhook"])
    LimitMetrics(made["node-agent"])
    ImageMetrics(made["node-agent"])
    return made


def _cri() -> str:
    """The image service's, which counts what is in its store when it is asked."""
    with TemporaryDirectory() as folder, closing(ImageStore(Path(folder))) as store:
        handlers = build_handlers("", {}, Platform(os="linux", architecture="amd64"), "")
        return _section("cri", CriMetrics(store, handlers).registry)


def _metrics() -> str:
    return "\n".join([*(_section(name, made) for name, made in registries().items()), _cri()])


def _section(name: str, registry: CollectorRegistry) -> str:
    rows = sorted(row for source in _collectors(registry) for row in _rows(source))
    head = f"## `bayplan {name}`\n\n| metric | type | labels | |\n|---|---|---|---|\n"
    return head + "".join(rows)


def _collectors(registry: CollectorRegistry) -> set[Collector]:
    return set(registry._collector_to_names)


def _rows(source: Collector) -> list[str]:
    return [_row(family, _labels(source, family)) for family in source.collect()]


def _labels(source: Collector, family: Metric) -> tuple[str, ...]:
    return tuple(getattr(source, "_labelnames", ())) or tuple(getattr(family, "_labelnames", ()))


def _row(family: Metric, labels: tuple[str, ...]) -> str:
    name = f"{family.name}_total" if family.type == "counter" else family.name
    said = ", ".join(f"`{label}`" for label in labels)
    return f"| `{name}` | {family.type} | {said} | {family.documentation} |\n"
