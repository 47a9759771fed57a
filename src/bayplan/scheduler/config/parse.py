"""Converts a KubeSchedulerConfiguration to settings.

kube-scheduler's defaults hold, but for these: without a file there is one profile named `bayplan`;
the lease is `kube-scheduler` only where pods of `default-scheduler` are served, since then the real
one must not act beside us; and the client keeps its own request budget unless told otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from bayplan.base.configfiles import ConfigFileError, FieldProblem, parse, read_text
from bayplan.base.durations import DurationError, parse_duration
from bayplan.client.election import LeaderElectionSettings, LeaseTiming
from bayplan.kube.names import is_object_name
from bayplan.scheduler.config import wire
from bayplan.scheduler.config.args import plugin_args
from bayplan.scheduler.config.plugins import choose
from bayplan.scheduler.config.settings import (
    BAYPLAN,
    DEFAULT_SCHEDULER,
    Backoff,
    SchedulerProfile,
    SchedulerSettings,
)
from bayplan.scheduler.config.warnings import check_percentage, warnings

KIND = "KubeSchedulerConfiguration"
API_VERSION = "kubescheduler.config.k8s.io/v1"


def default_settings(names: Sequence[str] = (BAYPLAN,)) -> SchedulerSettings:
    """Settings without a file: Kubernetes' plugins for each name."""
    profiles = [wire.KubeSchedulerProfile(scheduler_name=name) for name in names]
    return _settings(wire.Configuration(profiles=profiles))


def read_settings(path: Path) -> SchedulerSettings:
    """Read the settings of a file; ConfigFileError if it cannot be used."""
    return parse_settings(read_text(path), str(path))


def parse_settings(text: bytes, source: str) -> SchedulerSettings:
    """Read the settings of a text; ConfigFileError if it cannot be used."""
    document = parse(text, source, wire.Configuration)
    if (document.value.api_version, document.value.kind) != (API_VERSION, KIND):
        raise ConfigFileError(source, 1, "kind", f"must be a {KIND} of {API_VERSION}")
    try:
        return _settings(document.value)
    except FieldProblem as problem:
        raise document.error(problem) from None


def _settings(config: wire.Configuration) -> SchedulerSettings:
    if config.extenders:
        raise FieldProblem("extenders", "are not supported: no other process is asked")
    profiles = _profiles(config.profiles or [wire.KubeSchedulerProfile()])
    names = [profile.name for profile in profiles]
    connection = config.client_connection
    return SchedulerSettings(
        profiles=profiles,
        backoff=_backoff(config),
        leader=_leader(config.leader_election, names),
        kubeconfig=connection.kubeconfig,
        qps=_qps(connection.qps),
        burst=_burst(connection.burst),
        warnings=tuple(warnings(config, profiles)),
    )


def _profiles(said: Sequence[wire.KubeSchedulerProfile]) -> tuple[SchedulerProfile, ...]:
    profiles: list[SchedulerProfile] = []
    for index, profile in enumerate(said):
        field = f"profiles[{index}]"
        name = profile.scheduler_name
        if name is None and len(said) == 1:
            name = DEFAULT_SCHEDULER
        if not name or not is_object_name(name):
            raise FieldProblem(f"{field}.schedulerName", "is missing or cannot be a name")
        if any(name == other.name for other in profiles):
            raise FieldProblem(f"{field}.schedulerName", f"{name} is there twice")
        check_percentage(profile.percentage_of_nodes_to_score, f"{field}.percentageOfNodesToScore")
        chosen = choose(profile.plugins, f"{field}.plugins")
        args = plugin_args(profile.plugin_config, f"{field}.pluginConfig")
        profiles.append(
            SchedulerProfile(name, chosen.filters, chosen.scores, chosen.preempts, *args)
        )
    return tuple(profiles)


def _backoff(config: wire.Configuration) -> Backoff:
    initial = config.pod_initial_backoff_seconds
    most = config.pod_max_backoff_seconds
    made = Backoff(
        initial=1.0 if initial is None else float(initial),
        most=10.0 if most is None else float(most),
    )
    if made.initial <= 0:
        raise FieldProblem("podInitialBackoffSeconds", "must be more than 0")
    if made.most < made.initial:
        raise FieldProblem("podMaxBackoffSeconds", "must not be less than podInitialBackoffSeconds")
    return made


def _leader(said: wire.LeaderElection, names: Sequence[str]) -> LeaderElectionSettings:
    field = "leaderElection"
    if said.resource_lock not in {"", "leases"}:
        raise FieldProblem(f"{field}.resourceLock", "must be leases")
    shared = DEFAULT_SCHEDULER in names
    made = LeaderElectionSettings(
        elect=said.leader_elect is not False,
        namespace=said.resource_namespace or "kube-system",
        name=said.resource_name or ("kube-scheduler" if shared else "bayplan-scheduler"),
        timing=_timing(said, field),
    )
    for place, name in (("resourceNamespace", made.namespace), ("resourceName", made.name)):
        if not is_object_name(name):
            raise FieldProblem(f"{field}.{place}", "cannot be a name")
    return made


def _timing(said: wire.LeaderElection, field: str) -> LeaseTiming:
    usual = LeaseTiming()
    lease = _seconds(said.lease_duration, usual.lease_duration, f"{field}.leaseDuration")
    renew = _seconds(said.renew_deadline, usual.renew_deadline, f"{field}.renewDeadline")
    retry = _seconds(said.retry_period, usual.retry_period, f"{field}.retryPeriod")
    try:
        return LeaseTiming(lease, renew, retry)
    except ValueError as error:
        raise FieldProblem(field, str(error)) from None


def _seconds(text: str, usual: float, field: str) -> float:
    if not text:
        return usual
    try:
        return parse_duration(text)
    except DurationError as error:
        raise FieldProblem(field, str(error)) from None


def _qps(said: float) -> float | None:
    if not math.isfinite(said):
        raise FieldProblem("clientConnection.qps", "must be a number")
    # As in Kubernetes, a negative rate is none at all; 0 is unset.
    return math.inf if said < 0 else said or None


def _burst(said: int) -> int | None:
    if said < 0:
        raise FieldProblem("clientConnection.burst", "must not be negative")
    return said or None
