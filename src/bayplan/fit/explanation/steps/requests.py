"""Asking for less: a smaller request, by exactly as much as is short, or no host port."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from bayplan.fit.explanation import amounts
from bayplan.fit.explanation.fix import FixKind, Step
from bayplan.fit.explanation.neighbours import taken_ports
from bayplan.fit.explanation.smaller import with_requests_at_most
from bayplan.fit.explanation.trial import Trial
from bayplan.fit.plugins.node_resources_fit.filter import TOO_MANY_PODS, NodeResourcesFit
from bayplan.fit.signatures.signature import HostPort
from bayplan.kube.pods import Container
from bayplan.kube.requests import pod_requests


def ask_for_less(trial: Trial) -> Iterable[Step]:
    """Request what is free of everything that is short, unless nothing is."""
    resources = trial.filter(NodeResourcesFit)
    if resources is None or TOO_MANY_PODS in trial.refusal.reasons:
        return
    short = resources.shortages(trial.slot)
    asked = pod_requests(trial.pod)
    if not short or any(free <= 0 for _, free in short.values()):
        return
    pod = with_requests_at_most(trial.pod, {name: free for name, (_, free) in short.items()})
    if pod is None:
        return
    said = [_less(name, asked[name], free) for name, (_, free) in short.items()]
    largest = max((asked[name] - free) / asked[name] for name, (_, free) in short.items())
    text, what = f"request {' and '.join(said)}", " and ".join(short)
    yield Step(FixKind.SMALLER_REQUEST, text, 2 + 6 * largest, pod, less_of=what)


def _less(name: str, asked: int, free: int) -> str:
    less = amounts.of(name, asked - free)
    had = amounts.number(name, asked)
    return f"{less} less: {amounts.number(name, free)} instead of {had}"


def drop_host_ports(trial: Trial) -> Iterable[Step]:
    """Do without the host ports that are taken on the node."""
    taken = {port for port, _ in taken_ports(trial)}
    if not taken:
        return
    said = ", ".join(f"{port.port}/{port.protocol}" for port in sorted(taken))
    spec = trial.pod.spec
    pod = replace(
        trial.pod,
        spec=replace(
            spec,
            containers=[_without_ports(one, taken) for one in spec.containers],
            init_containers=[_without_ports(one, taken) for one in spec.init_containers],
        ),
    )
    yield Step(FixKind.DROP_HOST_PORT, f"do without host port {said}", 3.5 * len(taken), pod)


def _without_ports(container: Container, taken: set[HostPort]) -> Container:
    numbers = {(port.port, port.protocol) for port in taken}
    ports = [
        replace(port, host_port=0) if (port.host_port, port.protocol or "TCP") in numbers else port
        for port in container.ports
    ]
    return replace(container, ports=ports)
