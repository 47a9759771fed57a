"""Which of our daemons run in a lab, and how they are told to behave.

    crew = Crew(members("scheduler,autoscaler,queues"))
    aboard = muster(crew, spec, lambda: lab.simulation.provider)
    lab = VirtualLab(aboard.spec, aboard.daemons, webhooks=aboard.webhooks)

    aboard = muster(crew, spec, lambda: lab.simulation.provider, live=True)
    lab = LiveLab(aboard.spec, ServerConfig(), aboard.daemons)

The cloud is asked for when the autoscaler begins: by then the lab is there that has it. A daemon is
imported when a crew has it: most clusters have none of them, or not all.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, cast, get_args

from bayplan.autoscaler.cloudstate.reader import Expects, as_it_is
from bayplan.autoscaler.options import AutoscalerOptions
from bayplan.client import Client
from bayplan.embedded.asgi import App
from bayplan.embedded.simulation.clusterfile import ClusterSpec
from bayplan.fit import Profile
from bayplan.kube.attachtables import LimitsSection
from bayplan.kube.gates import ATTACH_VOLUME_LIMIT
from bayplan.lab.lab import Daemon
from bayplan.node.agent import LimitsAgent
from bayplan.node.decision import expecting
from bayplan.node.settings import settings_of
from bayplan.nodegroups import Provider

if TYPE_CHECKING:
    from bayplan.autoscaler.daemon import AutoscalerDaemon
    from bayplan.lab.doorkeeping import Doorkeeper
    from bayplan.scheduler.daemon import SchedulerDaemon

Member = Literal["scheduler", "autoscaler", "queues", "node-agent"]
MEMBERS: tuple[Member, ...] = get_args(Member)
SERVED = ("default-scheduler", "bayplan")
"""Whose pods a crew's scheduler places: also those that ask for nobody."""


class CrewError(ValueError):
    """Nobody is called that."""


@dataclass(frozen=True, slots=True)
class Crew:
    """Who is at work, by which rules."""

    members: frozenset[Member] = frozenset()
    profile: Profile = field(default_factory=Profile)
    """Feature gates, and what a missing driver means, for all of them."""
    options: AutoscalerOptions = field(default_factory=AutoscalerOptions)
    """What the autoscaler is told, its expanders among it."""
    schedulers: tuple[str, ...] = SERVED
    """The schedulerNames of the pods that are placed, and gated."""


@dataclass(frozen=True, slots=True)
class Aboard:
    """A crew that is ready to be handed to a lab."""

    spec: ClusterSpec
    """The cluster, with what the crew needs to find in it."""
    daemons: tuple[Daemon, ...] = ()
    webhooks: Mapping[str, App] = field(default_factory=dict)
    """For a `VirtualLab`; in a live one the webhook listens."""
    scheduler: SchedulerDaemon | None = None
    autoscaler: AutoscalerDaemon | None = None


def members(written: str) -> frozenset[Member]:
    """Members as a flag has them, with commas; CrewError if there is no such member."""
    named = [one.strip() for one in written.split(",")]
    for one in named:
        if one not in MEMBERS:
            raise CrewError(f"there is no {one[:80]!r}; there are {', '.join(MEMBERS)}")
    return frozenset(cast("Member", one) for one in named)


def muster(
    crew: Crew, spec: ClusterSpec, cloud: Callable[[], Provider], *, live: bool = False
) -> Aboard:
    """The crew's daemons for a cluster, in virtual time unless it is live."""
    agent, expects = _agent(crew, spec)
    scheduler, autoscaler = _scheduler(crew), _autoscaler(crew, cloud, expects)
    door = _doorkeeper(crew)
    guard = door and (door.lead_live if live else door.lead)
    leads = (agent, guard, scheduler and scheduler.lead, autoscaler and autoscaler.lead)
    return Aboard(
        _with_queue_kinds(spec) if door else spec,
        tuple(lead for lead in leads if lead),
        door.webhooks if door and not live else {},
        scheduler,
        autoscaler,
    )


def _agent(crew: Crew, spec: ClusterSpec) -> tuple[Daemon | None, Expects]:
    """Who publishes attach limits, if the crew or the cluster has it, and what new nodes will say
    because of that.
    """
    section = spec.attach_limits
    if section is None and "node-agent" in crew.members:
        section = LimitsSection()
    if section is None:
        return None, as_it_is
    settings = settings_of(section, enabled=crew.profile.gates.enabled(ATTACH_VOLUME_LIMIT))
    return LimitsAgent(lambda: settings).lead, expecting(lambda: settings)


def _doorkeeper(crew: Crew) -> Doorkeeper | None:
    if "queues" not in crew.members:
        return None
    from bayplan.lab.doorkeeping import Doorkeeper  # noqa: PLC0415

    return Doorkeeper(crew.schedulers, crew.profile.gates)


def _with_queue_kinds(spec: ClusterSpec) -> ClusterSpec:
    from bayplan.lab.doorkeeping import with_queue_kinds  # noqa: PLC0415

    return with_queue_kinds(spec)


def _scheduler(crew: Crew) -> SchedulerDaemon | None:
    if "scheduler" not in crew.members:
        return None
    from bayplan.scheduler.config import default_settings  # noqa: PLC0415
    from bayplan.scheduler.daemon import SchedulerDaemon  # noqa: PLC0415

    return SchedulerDaemon(default_settings(crew.schedulers), profile=crew.profile)


def _autoscaler(
    crew: Crew, cloud: Callable[[], Provider], expects: Expects
) -> AutoscalerDaemon | None:
    if "autoscaler" not in crew.members:
        return None
    from bayplan.autoscaler.daemon import AutoscalerDaemon  # noqa: PLC0415

    @asynccontextmanager
    async def opened(_: Client) -> AsyncIterator[Provider]:
        yield cloud()

    return AutoscalerDaemon(opened, crew.options, profile=crew.profile, expects=expects)
