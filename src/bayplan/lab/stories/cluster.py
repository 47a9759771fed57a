"""Runs of stories in a simulated cluster in virtual time, with figures.

Between two steps time stands still, so two runs can advance side by side in one thread, each on its
own event loop.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from math import ceil
from pathlib import Path
from typing import Self

from bayplan.base.virtualloop import VirtualLoop
from bayplan.client import Client
from bayplan.embedded.simulation.clusterfile import read_cluster
from bayplan.embedded.simulation.report import SimulationSummary, summarize
from bayplan.embedded.simulation.simulation import Simulation
from bayplan.fit import Profile
from bayplan.kube.gates import FeatureGates
from bayplan.lab.daemons import DaemonName, LabDaemons, prepare_daemons
from bayplan.lab.measurement import Grid, Meter
from bayplan.lab.measurement.series import StepSeries
from bayplan.lab.stories.story import Row, StoryFrame, StoryRun
from bayplan.lab.virtual import VirtualLab

_FAILURES = ("FailedAttachVolume", "ProvisioningFailed")
_GATED = "Scheduling is blocked due to non-empty scheduling gates"
_NAMES = re.compile(r'(claim|volume) "?[\w./-]*\d[\w./-]*"?')
_BOILERPLATE = re.compile(
    r"FailedAttachVolume: AttachVolume\.Attach failed for .*? : (rpc error: )?"
)


@dataclass(slots=True)
class ClusterFigures:
    """The figures of a cluster."""

    added: int = 0
    """Nodes added after the start."""
    most_nodes: int = 0
    running: int = 0
    waiting: int = 0
    """Pods that do not run at the end."""
    stuck: int = 0
    """Maximum number of pods that were stuck at the same time, as in reports."""
    all_ran: float | None = None
    """Seconds until no pod waited any more; None if some still do."""
    waited_seconds: float = 0.0
    """Total seconds that pods waited."""
    failures: int = 0
    cost: float = 0.0
    running_in: Counter[str] = field(default_factory=Counter)
    """Running pods by node group."""
    added_before: dict[str, int] = field(default_factory=dict)
    """By action, the nodes added before it."""
    answers: dict[str, str] = field(default_factory=dict)
    """By action, its result."""

    @property
    def rows(self) -> tuple[Row, ...]:
        """The rows of a table."""
        done = "never" if self.all_ran is None else f"at {clock(self.all_ran)}"
        rows = [
            ("nodes added", str(self.added)),
            ("pods running at the end", str(self.running)),
            ("pods still waiting at the end", str(self.waiting)),
            ("most pods stuck at once", str(self.stuck)),
            ("all pods run", done),
            ("minutes waited, all pods", f"{self.waited_seconds / 60:.0f}"),
            ("volume failures", str(self.failures)),
        ]
        for action, count in self.added_before.items():
            rows += [(f"nodes added before {action}", str(count)), ("cost", f"{self.cost:.2f}")]
        return (*rows, *self.answers.items())

    @property
    def headline(self) -> str:
        """A summary in one line."""
        for action, count in self.added_before.items():
            return f"{count} nodes added before {action}, cost {self.cost:.2f}"
        waiting = f", {self.waiting} do not" if self.waiting else ""
        waited = f"{self.waited_seconds / 60:.0f} min waited"
        return f"{self.added} nodes added, {self.running} pods run{waiting}, {waited}"


class FigureCounter:
    """Computes the figures step by step."""

    def __init__(self, simulation: Simulation, stuck: StepSeries) -> None:
        self._simulation = simulation
        self._stuck = stuck
        self.figures = ClusterFigures()
        self._instances: set[str] = set()
        self._last = 0.0
        simulation.cloud.listeners.append(self._instances.add)

    def begin(self) -> None:
        """Remember the instances that exist from the start."""
        self._initial = frozenset(self._simulation.cloud.instances)

    def count(self) -> StoryFrame:
        """Update the figures since the last step and return the frame."""
        seen, figures = summarize(self._simulation), self.figures
        waiting = seen.phases["Pending"]
        figures.waited_seconds += waiting * (seen.seconds - self._last)
        self._last = seen.seconds
        figures.added = len(self._instances - self._initial)
        figures.most_nodes = max(figures.most_nodes, len(seen.nodes))
        figures.running = seen.phases["Running"]
        figures.waiting = waiting
        figures.stuck = round(self._stuck.peak)
        if waiting:
            figures.all_ran = None
        elif figures.all_ran is None and seen.phases:
            figures.all_ran = seen.seconds
        figures.failures = sum(seen.warnings[reason] for reason in _FAILURES)
        figures.cost = seen.spent
        figures.running_in = self._running_in()
        return _frame(seen, figures, round(self._stuck.value))

    def _running_in(self) -> Counter[str]:
        view, fleet = self._simulation.view, self._simulation.fleet
        nodes = Counter(pod.node for pod in view.pods.values() if pod.phase == "Running")
        found: Counter[str] = Counter()
        for node, count in nodes.items():
            machine = fleet.find(node)
            found[machine.instance.group.name if machine is not None else ""] += count
        return found


def clock(seconds: float) -> str:
    """Format a time in minutes and seconds."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}:{rest:02}"


def _frame(seen: SimulationSummary, figures: ClusterFigures, stuck: int) -> StoryFrame:
    coming = len(seen.booting)
    nodes = f"{seen.ready} ready" + (f", {coming} booting" if coming else "")
    reason = _reason(seen)
    rows = (
        ("nodes", nodes),
        ("nodes added", str(figures.added)),
        ("pods running", str(figures.running)),
        ("pods waiting", str(figures.waiting - stuck)),
        ("pods stuck", str(stuck)),
        ("reason", reason or "-"),
    )
    log = f"{nodes}; {figures.running} running, {figures.waiting - stuck} waiting"
    log += f", {stuck} stuck" if stuck else ""
    return StoryFrame(clock(seen.seconds), rows, f"{log}: {reason}" if reason else log)


def _reason(seen: SimulationSummary) -> str:
    """Return the most frequent reason of waiting pods."""
    messages = [pod.message for pod in seen.unbound_pods if pod.message]
    messages += [
        pod.reason for pod in seen.stuck_pods if pod.reason.startswith("FailedAttachVolume")
    ]
    counts = Counter(_shorten(message) for message in messages)
    return counts.most_common(1)[0][0] if counts else ""


def _shorten(text: str) -> str:
    if text == _GATED:
        return "their queue has not admitted them"
    text = _BOILERPLATE.sub("", text.partition(" preemption: ")[0])
    return _NAMES.sub(r"\1 …", text)


STEP = 5.0
STORY_DAEMONS: frozenset[DaemonName] = frozenset({"scheduler", "autoscaler", "queues"})
"""The node agent runs, too, if the cluster file has attach limits."""


@dataclass(frozen=True, slots=True)
class StoryAction:
    """A change to the cluster at some time of a story."""

    at: float
    """Seconds from the start."""
    name: str
    do: Callable[[Client], Awaitable[str]]
    """Performs it and returns its result; if that is empty, the nodes added before are reported."""


class ClusterRun:
    """A run in a virtual cluster."""

    def __init__(
        self, file: Path, gates: FeatureGates, until: float, actions: Sequence[StoryAction]
    ) -> None:
        self._file = file
        self._daemons = LabDaemons(STORY_DAEMONS, Profile(gates=gates))
        self._until = until
        self._actions = sorted(actions, key=lambda action: action.at)
        self._stack = ExitStack()
        self._now = 0.0

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            self._runner = stack.enter_context(asyncio.Runner(loop_factory=VirtualLoop))
            self._lab = self._runner.run(self._open_lab())
            stack.callback(lambda: self._runner.run(self._lab.__aexit__(None, None, None)))
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    async def _open_lab(self) -> VirtualLab:
        prepared = prepare_daemons(
            self._daemons, read_cluster(self._file), lambda: lab.simulation.provider
        )
        lab = VirtualLab(prepared.spec, prepared.daemons, webhooks=prepared.webhooks)
        meter = Meter(lab.simulation, Grid.over(self._until), lambda *_: "")
        lab.plane.store.listeners.append(meter.observe)
        self._counter = FigureCounter(lab.simulation, meter.stuck)
        await lab.__aenter__()
        self._counter.begin()
        return lab

    @property
    def length(self) -> int:
        """The number of steps."""
        return ceil(self._until / STEP)

    def step(self) -> StoryFrame | None:
        """Advance by some seconds."""
        if self._now >= self._until:
            return None
        self._now = min(self._now + STEP, self._until)
        return self._runner.run(self._advance(self._now))

    async def _advance(self, until: float) -> StoryFrame:
        while self._actions and self._actions[0].at < until:
            action = self._actions.pop(0)
            await self._lab.run(action.at)
            figures = self._counter.figures
            if result := await action.do(self._lab.client()):
                figures.answers[action.name] = result
            else:
                figures.added_before[action.name] = figures.added
        await self._lab.run(until)
        return self._counter.count()

    @property
    def figures(self) -> ClusterFigures:
        """The figures so far."""
        return self._counter.figures


def in_cluster(
    minutes: float, *actions: StoryAction
) -> Callable[[Path, FeatureGates], StoryRun[ClusterFigures]]:
    """Return a function that starts runs of that length, with these actions."""
    return lambda file, gates: ClusterRun(file, gates, minutes * 60, actions)
