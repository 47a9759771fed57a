"""A take of a story that happens in a cluster: in virtual time, counted while it runs.

Between two steps time stands still, so two takes can go beside each other in one thread, each on an
event loop of its own.
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
from bayplan.embedded.simulation.report import Summary, summarize
from bayplan.embedded.simulation.simulation import Simulation
from bayplan.fit import Profile
from bayplan.kube.gates import FeatureGates
from bayplan.lab.crew import Crew, Member, muster
from bayplan.lab.measuring import Grid, Meter
from bayplan.lab.measuring.series import Series
from bayplan.lab.stories.story import Frame, Row, Take
from bayplan.lab.virtual import VirtualLab

_FAILURES = ("FailedAttachVolume", "ProvisioningFailed")
_GATED = "Scheduling is blocked due to non-empty scheduling gates"
_NAMES = re.compile(r'(claim|volume) "?[\w./-]*\d[\w./-]*"?')
_BOILERPLATE = re.compile(
    r"FailedAttachVolume: AttachVolume\.Attach failed for .*? : (rpc error: )?"
)


@dataclass(slots=True)
class ClusterFigures:
    """What a cluster came to."""

    bought: int = 0
    most_nodes: int = 0
    running: int = 0
    waiting: int = 0
    """Pods that do not run at the end."""
    stuck: int = 0
    """The most pods that were stuck at once, as reports count them."""
    all_ran: float | None = None
    """Seconds after which no pod waited any more; None if some do."""
    lost: float = 0.0
    """Seconds that pods waited, of all pods together."""
    failures: int = 0
    spent: float = 0.0
    running_in: Counter[str] = field(default_factory=Counter)
    """Running pods by node group."""
    bought_before: dict[str, int] = field(default_factory=dict)
    """By act, nodes bought before it."""
    answers: dict[str, str] = field(default_factory=dict)
    """What came of each act."""

    @property
    def rows(self) -> tuple[Row, ...]:
        """For a table."""
        done = "never" if self.all_ran is None else f"at {clock(self.all_ran)}"
        rows = [
            ("nodes bought", str(self.bought)),
            ("pods running at the end", str(self.running)),
            ("pods still waiting at the end", str(self.waiting)),
            ("most pods stuck at once", str(self.stuck)),
            ("all pods run", done),
            ("minutes lost, of all pods", f"{self.lost / 60:.0f}"),
            ("volume failures", str(self.failures)),
        ]
        for act, count in self.bought_before.items():
            rows += [(f"nodes bought before {act}", str(count)), ("cost", f"{self.spent:.2f}")]
        return (*rows, *self.answers.items())

    @property
    def headline(self) -> str:
        """In a line."""
        for act, count in self.bought_before.items():
            return f"{count} bought before {act}, cost {self.spent:.2f}"
        waiting = f", {self.waiting} do not" if self.waiting else ""
        return f"{self.bought} bought, {self.running} run{waiting}, {self.lost / 60:.0f} min lost"


class Counting:
    """Counts step by step."""

    def __init__(self, simulation: Simulation, stuck: Series) -> None:
        self._simulation = simulation
        self._stuck = stuck
        self.figures = ClusterFigures()
        self._sold: set[str] = set()
        self._began = 0.0
        simulation.cloud.listeners.append(self._sold.add)

    def begin(self) -> None:
        """What is there from the beginning was not bought."""
        self._given = frozenset(self._simulation.cloud.instances)

    def count(self) -> Frame:
        """Count what is so now, since the last time."""
        seen, figures = summarize(self._simulation), self.figures
        waiting = seen.phases["Pending"]
        figures.lost += waiting * (seen.seconds - self._began)
        self._began = seen.seconds
        figures.bought = len(self._sold - self._given)
        figures.most_nodes = max(figures.most_nodes, len(seen.nodes))
        figures.running = seen.phases["Running"]
        figures.waiting = waiting
        figures.stuck = round(self._stuck.peak)
        if waiting:
            figures.all_ran = None
        elif figures.all_ran is None and seen.phases:
            figures.all_ran = seen.seconds
        figures.failures = sum(seen.warnings[one] for one in _FAILURES)
        figures.spent = seen.spent
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
    """Minutes and seconds."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}:{rest:02}"


def _frame(seen: Summary, figures: ClusterFigures, stuck: int) -> Frame:
    coming = len(seen.booting)
    nodes = f"{seen.ready} ready" + (f", {coming} on the way" if coming else "")
    why = _why(seen)
    rows = (
        ("nodes", nodes),
        ("nodes bought", str(figures.bought)),
        ("pods running", str(figures.running)),
        ("pods waiting", str(figures.waiting - stuck)),
        ("pods stuck", str(stuck)),
        ("why", why or "-"),
    )
    log = f"{nodes}; {figures.running} running, {figures.waiting - stuck} waiting"
    log += f", {stuck} stuck" if stuck else ""
    return Frame(clock(seen.seconds), rows, f"{log}: {why}" if why else log)


def _why(seen: Summary) -> str:
    """What most of those that wait are told."""
    said = [one.said for one in seen.waiting if one.said]
    said += [one.why for one in seen.stuck if one.why.startswith("FailedAttachVolume")]
    told = Counter(_brief(one) for one in said)
    return told.most_common(1)[0][0] if told else ""


def _brief(text: str) -> str:
    if text == _GATED:
        return "their queue has not let them in"
    text = _BOILERPLATE.sub("", text.partition(" preemption: ")[0])
    return _NAMES.sub(r"\1 …", text)


STEP = 5.0
AT_WORK: frozenset[Member] = frozenset({"scheduler", "autoscaler", "queues"})
"""The node agent is there where the cluster file has attach limits."""


@dataclass(frozen=True, slots=True)
class Act:
    """Something that somebody does to the cluster."""

    at: float
    """Seconds from the beginning."""
    name: str
    do: Callable[[Client], Awaitable[str]]
    """Does it, and says what came of it; empty if it is a moment to tell what was before."""


class ClusterTake:
    """A virtual cluster, stepped through."""

    def __init__(self, file: Path, gates: FeatureGates, until: float, acts: Sequence[Act]) -> None:
        self._file = file
        self._crew = Crew(AT_WORK, Profile(gates=gates))
        self._until = until
        self._acts = sorted(acts, key=lambda act: act.at)
        self._stack = ExitStack()
        self._now = 0.0

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            self._runner = stack.enter_context(asyncio.Runner(loop_factory=VirtualLoop))
            self._lab = self._runner.run(self._opened())
            stack.callback(lambda: self._runner.run(self._lab.__aexit__(None, None, None)))
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    async def _opened(self) -> VirtualLab:
        aboard = muster(self._crew, read_cluster(self._file), lambda: lab.simulation.provider)
        lab = VirtualLab(aboard.spec, aboard.daemons, webhooks=aboard.webhooks)
        meter = Meter(lab.simulation, Grid.over(self._until), lambda *_: "")
        lab.plane.store.listeners.append(meter.observe)
        self._counting = Counting(lab.simulation, meter.stuck)
        await lab.__aenter__()
        self._counting.begin()
        return lab

    @property
    def length(self) -> int:
        """How many steps there are."""
        return ceil(self._until / STEP)

    def step(self) -> Frame | None:
        """Go on by some seconds."""
        if self._now >= self._until:
            return None
        self._now = min(self._now + STEP, self._until)
        return self._runner.run(self._stepped(self._now))

    async def _stepped(self, until: float) -> Frame:
        while self._acts and self._acts[0].at < until:
            act = self._acts.pop(0)
            await self._lab.run(act.at)
            figures = self._counting.figures
            if said := await act.do(self._lab.client()):
                figures.answers[act.name] = said
            else:
                figures.bought_before[act.name] = figures.bought
        await self._lab.run(until)
        return self._counting.count()

    @property
    def figures(self) -> ClusterFigures:
        """What it has come to so far."""
        return self._counting.figures


def in_cluster(minutes: float, *acts: Act) -> Callable[[Path, FeatureGates], Take[ClusterFigures]]:
    """Takes that last so long, and in which somebody does that."""
    return lambda file, gates: ClusterTake(file, gates, minutes * 60, acts)
