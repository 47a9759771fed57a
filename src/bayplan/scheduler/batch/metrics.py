"""Metrics of queues, under Volcano's names where it has them; read when they are scraped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from math import inf

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from bayplan.kube.resources import CPU, MEMORY, PODS
from bayplan.queues import Ledger, Resources, TaskStatus

_UNITS = {CPU: ("milli_cpu", "thousandths of a core"), MEMORY: ("memory_bytes", "bytes of memory")}
_PHASES = ("Pending", "Inqueue", "Running", "Unknown", "Completed")
_OURS = ("queue_reserved", "queue_inqueue", "queue_waiting")
"""What Volcano has no name for."""
Families = dict[str, GaugeMetricFamily]


class QueueMetrics(Collector):
    """Gauges of all queues of a ledger, while there is one."""

    def __init__(self, ledger: Callable[[], Ledger | None]) -> None:
        self._ledger = ledger

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """All gauges, as they now are."""
        ledger, families = self._ledger(), _families()
        if ledger is not None:
            for name in ledger.tree.nodes:
                _add_amounts(families, ledger, name)
                _add_counts(families, ledger, name)
        yield from families.values()


def _families() -> Families:
    made: Families = {}
    for what in ("allocated", "request", "deserved", "real_capacity", "inqueue", "reserved"):
        for suffix, unit in _UNITS.values():
            _make(made, f"queue_{what}_{suffix}", f"{what} of a queue, in {unit}")
        text = f"{what} of a queue, other resources, in thousandths"
        _make(made, f"queue_{what}_scalar_resources", text, "resource")
    _make(made, "queue_share", "How much of what it deserves a queue has.")
    _make(made, "queue_weight", "The weight of a queue.")
    for phase in _PHASES:
        _make(
            made, f"queue_pod_group_{phase.lower()}_count", f"Groups of a queue that are {phase}."
        )
    _make(made, "queue_waiting_groups", "Groups of a queue that have pods without a node.")
    return made


def _make(families: Families, name: str, text: str, *labels: str) -> None:
    whose = "bayplan" if name.startswith(_OURS) else "volcano"
    family = GaugeMetricFamily(f"{whose}_{name}", text, labels=["queue_name", *labels])
    families[name] = family


def _add_amounts(families: Families, ledger: Ledger, name: str) -> None:
    usage, quota = ledger.usage(name), ledger.quota(name)
    for what, amounts in (
        ("allocated", usage.allocated),
        ("request", usage.request),
        ("inqueue", usage.inqueue),
        ("reserved", usage.reserved),
        ("deserved", quota.deserved),
        ("real_capacity", quota.real_capability),
    ):
        _add(families, name, what, amounts)
    families["queue_share"].add_metric([name], ledger.share(name))
    families["queue_weight"].add_metric([name], ledger.tree.nodes[name].weight)


def _add(families: Families, name: str, what: str, amounts: Resources) -> None:
    """Amounts without a limit are left out."""
    for resource in {CPU, MEMORY, *amounts}:
        amount = amounts[resource]
        if amount == inf or resource == PODS:
            continue
        if resource in _UNITS:
            families[f"queue_{what}_{_UNITS[resource][0]}"].add_metric([name], amount)
        else:
            family = families[f"queue_{what}_scalar_resources"]
            family.add_metric([name, resource], amount)


def _add_counts(families: Families, ledger: Ledger, name: str) -> None:
    groups = list(ledger.groups_in(name))
    phases = Counter(group.phase for group in groups)
    for phase in _PHASES:
        family = families[f"queue_pod_group_{phase.lower()}_count"]
        family.add_metric([name], phases[phase])
    waiting = sum(group.count(TaskStatus.PENDING) > 0 for group in groups)
    families["queue_waiting_groups"].add_metric([name], waiting)
