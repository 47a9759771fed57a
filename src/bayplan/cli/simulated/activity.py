"""The activity of the daemons in a simulated cluster: queues, the autoscaler, the last events.

Everything is read from the daemons' own state; no requests are sent to the API server.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from heapq import nlargest

from rich.text import Text

from bayplan.autoscaler.plan import AutoscalerPlan
from bayplan.base.durations import format_duration
from bayplan.cli.simulated.tables import Rows
from bayplan.cli.text.output import printable
from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.control.view import EVENTS
from bayplan.embedded.simulation.report import UnboundPod
from bayplan.embedded.simulation.simulation import Simulation
from bayplan.fit import Snapshot
from bayplan.fit.explanation import explain
from bayplan.fit.explanation.cause import wait_reason
from bayplan.kube.pods import Pod
from bayplan.kube.volcano import ROOT_QUEUE
from bayplan.lab.daemons import PreparedDaemons
from bayplan.queues import Ledger, Resources, TaskStatus
from bayplan.queues.queue_snapshot import views
from bayplan.reports.queues import amounts

MOST_EVENTS = 8


@dataclass(frozen=True, slots=True)
class DaemonActivity:
    """The current activity of the daemons."""

    queues: Rows
    autoscaler: str
    events: Rows


IDLE = DaemonActivity(Rows((), []), "", Rows((), []))
"""The activity without daemons."""


class ActivityView:
    """Reads the activity of the daemons."""

    def __init__(self, aboard: PreparedDaemons, simulation: Simulation, snapshot: Snapshot) -> None:
        self._aboard = aboard
        self._simulation = simulation
        self._snapshot = snapshot

    def activity(self) -> DaemonActivity:
        """Return the current activity."""
        now = self._simulation.context.clock.now()
        daemon = self._aboard.autoscaler
        return DaemonActivity(
            queue_rows(self._ledger()),
            autoscaler_line(daemon.plans(), now) if daemon is not None else "",
            event_rows(self._simulation),
        )

    def reason(self, waiting: UnboundPod) -> str:
        """Return why a pod is pending: its scheduler's message, or what the model finds."""
        key = f"{waiting.key.namespace}/{waiting.key.name}"
        pod = self._snapshot.get(Pod, key)
        if pod is None or (waiting.message and not pod.spec.scheduling_gates):
            return waiting.message
        ledger = self._ledger()
        member = ledger.members.get(key) if ledger is not None else None
        if ledger is not None and member is not None and pod.spec.scheduling_gates:
            queue = ledger.groups[member.group].queue
            return wait_reason(self._snapshot, pod, f"queue {queue} has not admitted it").text
        if pod.spec.scheduling_gates:
            return wait_reason(self._snapshot, pod).text
        return explain(self._snapshot, pod, with_fixes=False).message

    def _ledger(self) -> Ledger | None:
        daemon = self._aboard.scheduler
        scheduler = daemon.scheduler if daemon is not None else None
        return scheduler.batch.ledger if scheduler is not None else None


def queue_rows(ledger: Ledger | None) -> Rows:
    """Return queues below the root with quota, usage, and the number of pending pods."""
    headings = ("QUEUE", "QUOTA", "ALLOCATED", "RESERVED", "PENDING PODS")
    if ledger is None:
        return Rows(headings, [])
    waiting: Counter[str] = Counter()
    for group in ledger.groups.values():
        waiting[group.queue] += group.count(TaskStatus.PENDING)
    rows: list[tuple[str | Text, ...]] = [
        (
            "  " * (one.depth - 1) + one.node.name,
            _cell(one.quota.real_capability) or "no limit",
            _cell(one.usage.allocated) or "-",
            _cell(one.usage.reserved) or "-",
            Text(str(count), style="yellow" if count else ""),
        )
        for one in views(ledger)
        if one.node.name != ROOT_QUEUE
        for count in (waiting[one.node.name],)
    ]
    return Rows(headings, rows)


def autoscaler_line(plans: tuple[AutoscalerPlan, ...], now: datetime) -> str:
    """Return the autoscaler's last decision, and the upcoming nodes."""
    if not plans:
        return "autoscaler: starting"
    last = plans[-1]
    decisions = [
        _decision(one, now) for one in reversed(plans) if one is last or one.status != "waiting"
    ]
    decisions = [one for one in decisions if one]
    upcoming = ", ".join(f"{group} {count}" for group, count in sorted(last.upcoming.items()))
    parts = [decisions[0] if decisions else "nothing to do"]
    if upcoming:
        parts.append(f"upcoming nodes: {upcoming}")
    if last.pending:
        pods = "1 pod" if len(last.pending) == 1 else f"{len(last.pending)} pods"
        parts.append(f"no node group fits {pods}")
    return printable(f"autoscaler: {'; '.join(parts)}")


def _decision(plan: AutoscalerPlan, now: datetime) -> str:
    """Return what was decided, and when; empty if there was nothing to do."""
    did = [str(one) for one in plan.scale_ups]
    did += [f"{one.node} ({one.reason})" for one in plan.removals]
    what = ", ".join(did) or plan.message
    if plan.status == "nothing to do":
        return ""
    if not what and plan.status == "waiting":
        return "waiting for upcoming nodes"
    age = format_duration(max(0, int((now - plan.time).total_seconds())))
    return f"{plan.status} {what}".strip() + f", {age} ago"


def event_rows(simulation: Simulation) -> Rows:
    """Return the last events, grouped by reason and kind, the newest first."""
    latest = nlargest(10 * MOST_EVENTS, simulation.view.all(EVENTS), key=_when)
    found: dict[tuple[str, str], list[JsonObject]] = {}
    for event in latest:
        kind = str((event.get("involvedObject") or {}).get("kind") or "").lower()
        found.setdefault((str(event.get("reason") or ""), kind), []).append(event)
    rows = [_event_row(reason, kind, alike) for (reason, kind), alike in found.items()]
    return Rows(("LAST EVENT", "OBJECT", "MESSAGE"), rows[:MOST_EVENTS])


def _event_row(reason: str, kind: str, alike: list[JsonObject]) -> tuple[str | Text, ...]:
    newest = alike[0]
    name = (newest.get("involvedObject") or {}).get("name") or ""
    more = f" +{len(alike) - 1}" if len(alike) > 1 else ""
    style = "yellow" if newest.get("type") == "Warning" else ""
    text = str(newest.get("message") or "").partition(" preemption: ")[0]
    return Text(printable(reason), style=style), f"{kind}/{name}{more}", text


def _when(event: JsonObject) -> str:
    series = event.get("series") or {}
    return str(
        series.get("lastObservedTime") or event.get("eventTime") or event.get("lastTimestamp") or ""
    )


def _cell(resources: Resources) -> str:
    listed = {name: amount for name, amount in amounts(resources).items() if name != "pods"}
    return ", ".join(f"{amount} {name}" for name, amount in listed.items())
