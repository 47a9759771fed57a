"""The resource requests of a pod, as Kubernetes counts them.

Containers run together, so their requests add up; init containers run before them one at a time, so
the largest counts, on top of the sidecars (init containers that restart always) started before it.
Pod-level cpu, memory and huge pages replace the sum. Overhead comes on top. During an in-place
resize the kubelet's status has the allocated and the actual resources; the largest of desired,
allocated and actual counts, without the desired ones if the kubelet reports them as infeasible.

The API server's defaults are applied too, so that a manifest counts like the object it becomes:
a limit without a request is also the request, and every amount is rounded up to thousandths.
Sums are then exact in thousandths; only the total is rounded up to whole units.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from bayplan.kube.meta import Quantity
from bayplan.kube.pods import Container, ContainerStatus, Pod, ResourceRequirements
from bayplan.kube.quantity import milli_value
from bayplan.kube.resources import CPU, MEMORY, is_hugepage

DEFAULT_MILLI_CPU = 100
DEFAULT_MEMORY = 200 * 1024 * 1024

Millis = dict[str, int]
"""Amounts by resource, each in thousandths."""

_NONE: Millis = {}
_ASSUMED: Millis = {CPU: DEFAULT_MILLI_CPU, MEMORY: DEFAULT_MEMORY * 1000}
_View = Callable[[Container], Millis]


def pod_requests(pod: Pod) -> dict[str, int]:
    """Return the pod's requests: cpu in thousandths, all others in whole units."""
    return _in_units(_total(pod, _NONE))


def pod_requests_milli(pod: Pod) -> Millis:
    """Return the pod's requests before rounding: all in thousandths."""
    return _total(pod, _NONE)


def pod_requests_nonzero(pod: Pod) -> dict[str, int]:
    """Return the requests of a pending pod for scores of free capacity.

    A container without a request counts 100m cpu and 200 MiB; only a missing request is assumed, an
    explicit zero stays zero. Pod-level requests are not read: kube-scheduler's score looks only at
    the containers until the pod is on a node.
    """
    return _in_units(_with_overhead(pod, _of_containers(pod, _ASSUMED)))


def pod_requests_nonzero_on_node(pod: Pod) -> dict[str, int]:
    """Return the requests of a pod on a node for scores.

    They differ only with pod-level resources, where cpu or memory is assumed only if neither the
    pod nor any container requests it.
    """
    if not _pod_level(pod):
        return pod_requests_nonzero(pod)
    requested = _total(pod, _NONE)
    missing = {k: v for k, v in _ASSUMED.items() if k not in requested}
    return _in_units(_total(pod, missing))


def _total(pod: Pod, assumed: Millis) -> Millis:
    total = _of_containers(pod, assumed)
    if pod.spec.resources is not None:
        total.update(_effective_pod_level(pod))
    return _with_overhead(pod, total)


def _with_overhead(pod: Pod, total: Millis) -> Millis:
    if pod.spec.overhead:
        _add(total, _millis(pod.spec.overhead))
    return total


def _of_containers(pod: Pod, assumed: Millis) -> Millis:
    infeasible = is_resize_infeasible(pod)
    if not infeasible and not _has_status_resources(pod):
        return _aggregate(pod, _spec_requests, assumed)
    sums = [] if infeasible else [_aggregate(pod, _spec_requests, assumed)]
    return _largest([*sums, *_reported(pod, infeasible, assumed)])


def _reported(pod: Pod, infeasible: bool, assumed: Millis) -> Iterator[Millis]:
    """Yield allocated and actual resources: by pod if they are reported so, else by container."""
    status = pod.status
    if status.allocated_resources and status.resources and status.resources.requests:
        yield _millis(status.allocated_resources)
        yield _millis(status.resources.requests)
        return
    fallback = _nothing if infeasible else _spec_requests
    reports = {s.name: s for s in (*status.init_container_statuses, *status.container_statuses)}
    yield _aggregate(pod, lambda c: _allocated(reports.get(c.name)) or fallback(c), assumed)
    yield _aggregate(pod, lambda c: _actuated(reports.get(c.name)) or fallback(c), assumed)


def _aggregate(pod: Pod, view: _View, assumed: Millis) -> Millis:
    """Return the sum over containers, or the peak of the init containers where that is more."""
    total: Millis = {}
    for container in pod.spec.containers:
        _add(total, _with_assumed(view(container), assumed))
    if not pod.spec.init_containers:
        return total
    sidecars: Millis = {}
    peaks: list[Millis] = []
    for container in pod.spec.init_containers:
        amounts = _with_assumed(view(container), assumed)
        if container.restart_policy == "Always":
            _add(total, amounts)
            _add(sidecars, amounts)
            peaks.append(dict(sidecars))
        else:
            peaks.append(_add(dict(amounts), sidecars))
    return _largest([total, *peaks])


def _effective_pod_level(pod: Pod) -> Millis:
    desired = _pod_level(pod)
    status = pod.status
    if not desired or status.resources is None:
        return desired
    reported = [_millis(status.resources.requests), _millis(status.allocated_resources)]
    feasible = [] if is_resize_infeasible(pod) else [desired]
    return _only_pod_level(_largest([*feasible, *reported]))


def _pod_level(pod: Pod) -> Millis:
    """Return the pod-level requests, including those that the API server derives from limits."""
    resources = pod.spec.resources
    if resources is None or not (resources.requests or resources.limits):
        return {}
    requests = _millis(resources.requests)
    limits = _millis(resources.limits)
    for name, amount in _aggregate(pod, _spec_limits, _NONE).items():
        if is_hugepage(name) and name not in requests:
            limits.setdefault(name, amount)
    if limits:
        for name, amount in _aggregate(pod, _spec_requests, _NONE).items():
            if name in {CPU, MEMORY}:
                requests.setdefault(name, amount)
        requests = {**limits, **requests}
    return _only_pod_level(requests)


def _only_pod_level(amounts: Millis) -> Millis:
    """Return only the resources that can be set for a whole pod."""
    return {k: v for k, v in amounts.items() if k in {CPU, MEMORY} or is_hugepage(k)}


def _spec_requests(container: Container) -> Millis:
    return requests_with_defaults(container.resources)


def _spec_limits(container: Container) -> Millis:
    return _millis(container.resources.limits)


def _nothing(_container: Container) -> Millis:
    return {}


def requests_with_defaults(resources: ResourceRequirements) -> Millis:
    """Return requests in thousandths; a limit without a request is also the request."""
    requests = _millis(resources.requests)
    for name, limit in resources.limits.items():
        if name not in requests:
            requests[name] = milli_value(limit)
    return requests


def _allocated(status: ContainerStatus | None) -> Millis:
    return _millis(status.allocated_resources) if status else {}


def _actuated(status: ContainerStatus | None) -> Millis:
    if status and status.resources and status.resources.requests:
        return _millis(status.resources.requests)
    return _allocated(status)


def _has_status_resources(pod: Pod) -> bool:
    status = pod.status
    if status.allocated_resources or status.resources is not None:
        return True
    return any(
        container.allocated_resources or container.resources is not None
        for container in (*status.container_statuses, *status.init_container_statuses)
    )


def is_resize_infeasible(pod: Pod) -> bool:
    """Return whether the kubelet reports the desired resize as infeasible."""
    for condition in pod.status.conditions:
        if condition.type == "PodResizePending":
            return condition.reason == "Infeasible"
    return False


def _millis(amounts: Mapping[str, Quantity]) -> Millis:
    return {name: milli_value(written) for name, written in amounts.items()}


def _with_assumed(amounts: Millis, assumed: Millis) -> Millis:
    return {**assumed, **amounts} if assumed else amounts


def _add(total: Millis, more: Millis) -> Millis:
    for name, amount in more.items():
        total[name] = total.get(name, 0) + amount
    return total


def _largest(lists: Iterable[Millis]) -> Millis:
    result: Millis = {}
    for amounts in lists:
        for name, amount in amounts.items():
            result[name] = max(result.get(name, amount), amount)
    return result


def _in_units(millis: Millis) -> dict[str, int]:
    return {k: v if k == CPU else -(-v // 1000) for k, v in millis.items()}
