"""What a crew does in a simulated cluster, for its screen: queues, the autoscaler, the last events.

Everything is read where the daemons have it; nothing is asked of the API server.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from heapq import nlargest

from rich.text import Text

from bayplan.autoscaler.plan import Plan
from bayplan.base.durations import format_duration
from bayplan.cli.simulated.tables import Rows
from bayplan.cli.text.output import printable
from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.control.view import EVENTS
from bayplan.embedded.simulation.report import Waiting
from bayplan.embedded.simulation.simulation import Simulation
from bayplan.fit import Snapshot
from bayplan.fit.explanation import explain
from bayplan.fit.explanation.cause import why_it_waits
from bayplan.kube.pods import Pod
from bayplan.kube.queueing import ROOT_QUEUE
from bayplan.lab.crew import Aboard
from bayplan.queues import Ledger, Resources, Status
from bayplan.queues.survey import views
from bayplan.reports.queues import amounts

MOST_EVENTS = 8


@dataclass(frozen=True, slots=True)
class DaemonActivity:
    """What the crew does just now."""

    queues: Rows
    autoscaler: str
    events: Rows


IDLE = DaemonActivity(Rows((), []), "", Rows((), []))
"""Nobody is at work."""


class ActivityView:
    """Looks over the shoulders of a crew."""

    def __init__(self, aboard: Aboard, simulation: Simulation, snapshot: Snapshot) -> None:
        self._aboard = aboard
        self._simulation = simulation
        self._snapshot = snapshot

    def doings(self) -> DaemonActivity:
        """What it does now."""
        now = self._simulation.stage.clock.now()
        daemon = self._aboard.autoscaler
        return DaemonActivity(
            queue_rows(self._ledger()),
            autoscaler_line(daemon.plans(), now) if daemon is not None else "",
            event_rows(self._simulation),
        )

    def why(self, waiting: Waiting) -> str:
        """Why a pod waits: what its scheduler said, unless it has not come to that."""
        key = f"{waiting.key.namespace}/{waiting.key.name}"
        pod = self._snapshot.get(Pod, key)
        if pod is None or (waiting.said and not pod.spec.scheduling_gates):
            return waiting.said
        ledger = self._ledger()
        member = ledger.members.get(key) if ledger is not None else None
        if ledger is not None and member is not None and pod.spec.scheduling_gates:
            queue = ledger.groups[member.group].queue
            return why_it_waits(self._snapshot, pod, f"queue {queue} has not let it in").text
        if pod.spec.scheduling_gates:
            return why_it_waits(self._snapshot, pod).text
        return explain(self._snapshot, pod, with_fixes=False).message

    def _ledger(self) -> Ledger | None:
        daemon = self._aboard.scheduler
        scheduler = daemon.scheduler if daemon is not None else None
        return scheduler.batch.ledger if scheduler is not None else None


def queue_rows(ledger: Ledger | None) -> Rows:
    """Queues below the root: what they may have, what they have, and how many pods wait."""
    headings = ("QUEUE", "QUOTA", "ALLOCATED", "RESERVED", "PODS WAITING")
    if ledger is None:
        return Rows(headings, [])
    waiting: Counter[str] = Counter()
    for group in ledger.groups.values():
        waiting[group.queue] += group.count(Status.PENDING)
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


def autoscaler_line(plans: tuple[Plan, ...], now: datetime) -> str:
    """What the autoscaler last did, and what is on its way because of it."""
    if not plans:
        return "autoscaler: starts"
    last = plans[-1]
    said = [
        _decision(one, now) for one in reversed(plans) if one is last or one.status != "waiting"
    ]
    said = [one for one in said if one]
    upcoming = ", ".join(f"{group} {count}" for group, count in sorted(last.upcoming.items()))
    parts = [said[0] if said else "has nothing to do"]
    if upcoming:
        parts.append(f"on the way: {upcoming}")
    if last.pending:
        parts.append(f"can help {len(last.pending)} pods with no node")
    return printable(f"autoscaler: {'; '.join(parts)}")


def _decision(plan: Plan, now: datetime) -> str:
    """What was decided, and when; empty if there was nothing to decide."""
    did = [str(one) for one in plan.scale_ups]
    did += [f"{one.node} ({one.reason})" for one in plan.removals]
    what = ", ".join(did) or plan.message
    if plan.status == "nothing to do":
        return ""
    if not what and plan.status == "waiting":
        return "waits for nodes that are on their way"
    age = format_duration(max(0, int((now - plan.time).total_seconds())))
    return f"{plan.status} {what}".strip() + f", {age} ago"


def event_rows(simulation: Simulation) -> Rows:
    """The last events, those alike together, the newest first."""
    latest = nlargest(10 * MOST_EVENTS, simulation.view.all(EVENTS), key=_when)
    found: dict[tuple[str, str], list[JsonObject]] = {}
    for event in latest:
        kind = str((event.get("involvedObject") or {}).get("kind") or "").lower()
        found.setdefault((str(event.get("reason") or ""), kind), []).append(event)
    rows = [_event_row(reason, kind, alike) for (reason, kind), alike in found.items()]
    return Rows(("LAST EVENT", "OF", "SAYS"), rows[:MOST_EVENTS])


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
    said = {name: amount for name, amount in amounts(resources).items() if name != "pods"}
    return ", ".join(f"{amount} {name}" for name, amount in said.items())
