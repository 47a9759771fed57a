"""Which of our daemons run in a lab, and with which settings.

    daemons = LabDaemons(parse_daemon_names("scheduler,autoscaler,queues"))
    prepared = prepare_daemons(daemons, spec, lambda: lab.simulation.provider)
    lab = VirtualLab(prepared.spec, prepared.daemons, webhooks=prepared.webhooks)

    prepared = prepare_daemons(daemons, spec, lambda: lab.simulation.provider, live=True)
    lab = LiveLab(prepared.spec, ServerConfig(), prepared.daemons)

The provider is a function because the lab, which has it, is created later. A daemon is imported
only if it runs: most labs have none of them, or not all.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, cast, get_args

from bayplan.autoscaler.cloudstate.reader import AmendTemplate, unchanged
from bayplan.autoscaler.options import AutoscalerOptions
from bayplan.client import Client
from bayplan.embedded.asgi import App
from bayplan.embedded.simulation.clusterfile import ClusterSpec
from bayplan.fit import Profile
from bayplan.kube.attachtables import LimitsSection
from bayplan.kube.gates import ATTACH_VOLUME_LIMIT
from bayplan.lab.lab import Daemon
from bayplan.node.agent import LimitsAgent
from bayplan.node.decision import expect_limits
from bayplan.node.settings import settings_of
from bayplan.nodegroups import Provider

if TYPE_CHECKING:
    from bayplan.autoscaler.daemon import AutoscalerDaemon
    from bayplan.lab.admission import LabWebhook
    from bayplan.scheduler.daemon import SchedulerDaemon

DaemonName = Literal["scheduler", "autoscaler", "queues", "node-agent"]
DAEMON_NAMES: tuple[DaemonName, ...] = get_args(DaemonName)
SCHEDULER_NAMES = ("default-scheduler", "bayplan")
"""The schedulerNames that the scheduler of a lab serves, including the default one."""


class UnknownDaemonError(ValueError):
    """An unknown name of a daemon."""


@dataclass(frozen=True, slots=True)
class LabDaemons:
    """The daemons of a lab and their settings."""

    names: frozenset[DaemonName] = frozenset()
    profile: Profile = field(default_factory=Profile)
    """The scheduling profile, with the feature gates, of all daemons."""
    options: AutoscalerOptions = field(default_factory=AutoscalerOptions)
    """The options of the autoscaler."""
    schedulers: tuple[str, ...] = SCHEDULER_NAMES
    """The schedulerNames of the pods that are scheduled, and gated."""


@dataclass(frozen=True, slots=True)
class PreparedDaemons:
    """Daemons that can be passed to a lab."""

    spec: ClusterSpec
    """The cluster, with the objects that the daemons need."""
    daemons: tuple[Daemon, ...] = ()
    webhooks: Mapping[str, App] = field(default_factory=dict)
    """For a `VirtualLab`; in a `LiveLab` the webhook listens on a port."""
    scheduler: SchedulerDaemon | None = None
    autoscaler: AutoscalerDaemon | None = None


def parse_daemon_names(text: str) -> frozenset[DaemonName]:
    """Parse a comma-separated flag value; raise UnknownDaemonError for an unknown name."""
    names = [name.strip() for name in text.split(",")]
    for name in names:
        if name not in DAEMON_NAMES:
            raise UnknownDaemonError(
                f"unknown daemon {name[:80]!r}; known daemons: {', '.join(DAEMON_NAMES)}"
            )
    return frozenset(cast("DaemonName", name) for name in names)


def prepare_daemons(
    daemons: LabDaemons, spec: ClusterSpec, provider: Callable[[], Provider], *, live: bool = False
) -> PreparedDaemons:
    """Prepare the daemons for a cluster, in virtual time unless it is live."""
    agent, amend = _agent(daemons, spec)
    scheduler, autoscaler = _scheduler(daemons), _autoscaler(daemons, provider, amend)
    webhook = _webhook(daemons)
    admission = webhook and (webhook.lead_live if live else webhook.lead)
    leads = (agent, admission, scheduler and scheduler.lead, autoscaler and autoscaler.lead)
    return PreparedDaemons(
        _with_queue_kinds(spec) if webhook else spec,
        tuple(lead for lead in leads if lead),
        webhook.webhooks if webhook and not live else {},
        scheduler,
        autoscaler,
    )


def _agent(daemons: LabDaemons, spec: ClusterSpec) -> tuple[Daemon | None, AmendTemplate]:
    """Return the node agent, if the lab or the cluster has it, and the limits that it will
    publish on new nodes.
    """
    section = spec.attach_limits
    if section is None and "node-agent" in daemons.names:
        section = LimitsSection()
    if section is None:
        return None, unchanged
    settings = settings_of(section, enabled=daemons.profile.gates.enabled(ATTACH_VOLUME_LIMIT))
    return LimitsAgent(lambda: settings).lead, expect_limits(lambda: settings)


def _webhook(daemons: LabDaemons) -> LabWebhook | None:
    if "queues" not in daemons.names:
        return None
    from bayplan.lab.admission import LabWebhook  # noqa: PLC0415

    return LabWebhook(daemons.schedulers, daemons.profile.gates)


def _with_queue_kinds(spec: ClusterSpec) -> ClusterSpec:
    from bayplan.lab.admission import with_queue_kinds  # noqa: PLC0415

    return with_queue_kinds(spec)


def _scheduler(daemons: LabDaemons) -> SchedulerDaemon | None:
    if "scheduler" not in daemons.names:
        return None
    from bayplan.scheduler.config import default_settings  # noqa: PLC0415
    from bayplan.scheduler.daemon import SchedulerDaemon  # noqa: PLC0415

    return SchedulerDaemon(default_settings(daemons.schedulers), profile=daemons.profile)


def _autoscaler(
    daemons: LabDaemons, provider: Callable[[], Provider], amend: AmendTemplate
) -> AutoscalerDaemon | None:
    if "autoscaler" not in daemons.names:
        return None
    from bayplan.autoscaler.daemon import AutoscalerDaemon  # noqa: PLC0415

    @asynccontextmanager
    async def open_provider(_: Client) -> AsyncIterator[Provider]:
        yield provider()

    return AutoscalerDaemon(
        open_provider, daemons.options, profile=daemons.profile, amend_template=amend
    )
