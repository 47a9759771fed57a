"""What a refusal means on this very node: the numbers, taints and labels behind the reason.

kube-scheduler's reasons are short so that they can be counted. Here is what a person then asks: how
much is free, which taint, which label, whose volumes, which pods.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from bayplan.fit.explanation import amounts
from bayplan.fit.explanation.details_of_rules import affinity_details, spread_details
from bayplan.fit.explanation.details_of_volumes import binding_details, zone_details
from bayplan.fit.explanation.neighbours import taken_ports
from bayplan.fit.explanation.steps.labels import mismatch, written
from bayplan.fit.explanation.steps.limits import missing_drivers
from bayplan.fit.explanation.steps.moves import users_of_exclusive_claims
from bayplan.fit.explanation.steps.taints import untolerated, written_taint
from bayplan.fit.explanation.trial import Trial
from bayplan.fit.plugins.node_resources_fit.filter import NodeResourcesFit
from bayplan.fit.plugins.node_volume_limits.filter import NodeVolumeLimits
from bayplan.fit.state.volume_report import VolumeReport, volumes_on


def details_of(trial: Trial) -> tuple[str, ...]:
    """The facts behind a refusal, as far as there is more to say."""
    tell = _BY_PLUGIN.get(trial.refusal.plugin)
    if tell is None:
        return ()
    with trial.as_refused():
        return tuple(tell(trial))


def limit_in_words(report: VolumeReport) -> str:
    """A driver's places on a node, and who says how many there are."""
    limit = report.limit
    if limit.count is None:
        return f"{report.used} in use, no limit"
    return (
        f"{report.used} of {limit.count} in use (limit from {limit.detail or limit.source.value})"
    )


def _taints(trial: Trial) -> list[str]:
    return [f"taint {written_taint(taint)}" for taint in untolerated(trial.node, trial.pod)]


def _labels(trial: Trial) -> list[str]:
    found, labels = mismatch(trial.pod, trial.node), trial.node.metadata.labels
    said = [
        f"wants label {key}={value}, node has {_have(labels.get(key))}"
        for key, value in found.selector.items()
    ]
    return said + [
        f"wants {written(e)}, node has {_have(labels.get(e.key))}" for e in found.expressions
    ]


def _have(value: str | None) -> str:
    return "none" if value is None else value or "an empty value"


def _resources(trial: Trial) -> list[str]:
    resources = trial.filter(NodeResourcesFit)
    short = resources.shortages(trial.slot) if resources else {}
    return [
        f"wants {amounts.of(name, wanted)}, {amounts.number(name, max(free, 0))} free"
        for name, (wanted, free) in short.items()
    ]


def _limits(trial: Trial) -> list[str]:
    if missing_drivers(trial):
        return [_registered(trial)]
    limits = trial.filter(NodeVolumeLimits)
    return [
        f"{driver}: {limit_in_words(volumes_on(trial.snapshot.cluster, trial.name, driver))}"
        for driver in (limits.full_drivers(trial.slot) if limits else ())
    ]


def _registered(trial: Trial) -> str:
    csinode = trial.csinode
    if csinode is None:
        return "it has no CSINode"
    names = ", ".join(driver.name for driver in csinode.spec.drivers)
    return f"its CSINode lists {names or 'no driver'}"


def _ports(trial: Trial) -> list[str]:
    return [
        f"host port {port.port}/{port.protocol} is taken by pod {key}"
        for port, key in taken_ports(trial)
    ]


def _claim_users(trial: Trial) -> list[str]:
    users = users_of_exclusive_claims(trial)
    return [f"pod {user} has claim {claim} for itself" for user, claim in users.items()]


def _names(trial: Trial) -> list[str]:
    wanted = trial.snapshot.cluster.shapes.of(trial.pod).node_names or ()
    return [f"required affinity names {', '.join(sorted(wanted))}"]


_BY_PLUGIN: Mapping[str, Callable[[Trial], list[str]]] = {
    "PreFilterResult": _names,
    "TaintToleration": _taints,
    "NodeAffinity": _labels,
    "NodePorts": _ports,
    "NodeResourcesFit": _resources,
    "VolumeRestrictions": _claim_users,
    "NodeVolumeLimits": _limits,
    "VolumeBinding": binding_details,
    "VolumeZone": zone_details,
    "PodTopologySpread": spread_details,
    "InterPodAffinity": affinity_details,
}
