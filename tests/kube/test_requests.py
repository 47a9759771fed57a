"""A pod's requests are counted as kube-scheduler counts them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.kube.pods import ContainerStatus, Pod, ResourceRequirements
from bayplan.kube.requests import (
    pod_requests,
    pod_requests_nonzero,
    pod_requests_nonzero_on_node,
)
from tests.builders import PodBuilder, make_pod

MIB = 1 << 20
ASSUMED = {"cpu": 100, "memory": 200 * MIB}
amounts = st.integers(0, 4000)


def resized(pod: Pod, **status: str) -> Pod:
    """The pod with what the kubelet says it has set aside for its first container."""
    report = ContainerStatus(name="c0", allocated_resources=dict(status))
    pod.status.container_statuses = [report]
    return pod


def test_containers_add_up() -> None:
    pod = make_pod().cpu("1500m").memory("1Gi").container(cpu="0.5", memory="1Gi").obj()
    assert pod_requests(pod) == {"cpu": 2000, "memory": 2 << 30}


def test_cpu_is_in_thousandths_and_all_else_in_whole_units_rounded_up() -> None:
    pod = make_pod().cpu("100u").memory("100m").request("nvidia.com/gpu", 2).obj()
    assert pod_requests(pod) == {"cpu": 1, "memory": 1, "nvidia.com/gpu": 2}


def test_only_the_total_is_rounded_to_whole_units() -> None:
    pod = make_pod().memory("1500m").container(memory="1500m").obj()
    assert pod_requests(pod) == {"memory": 3}


def test_every_amount_is_rounded_to_thousandths_as_the_api_server_does() -> None:
    pod = make_pod().cpu("100u").container(cpu="100u").obj()
    assert pod_requests(pod) == {"cpu": 2}


def test_a_limit_without_a_request_is_also_the_request() -> None:
    pod = make_pod().limit("cpu", "2").limit("memory", "1Gi").memory("1Mi").obj()
    assert pod_requests(pod) == {"cpu": 2000, "memory": MIB}


def test_the_largest_init_container_counts_if_it_is_more_than_the_containers() -> None:
    pod = make_pod().cpu("1").memory("10").init(cpu="3").init(cpu="2", memory="5").obj()
    assert pod_requests(pod) == {"cpu": 3000, "memory": 10}


def test_sidecars_add_to_containers_and_to_init_containers_after_them() -> None:
    pod = make_pod().cpu("1").init(cpu="2").sidecar(cpu="1").init(cpu="4").sidecar(cpu="1").obj()
    assert pod_requests(pod) == {"cpu": 5000}


def test_a_sidecar_does_not_count_for_init_containers_before_it() -> None:
    pod = make_pod().cpu("1").init(cpu="4").sidecar(cpu="2").obj()
    assert pod_requests(pod) == {"cpu": 4000}


def test_overhead_comes_on_top() -> None:
    pod = make_pod().cpu("1").init(cpu="2").overhead(cpu="250m", memory="64Mi").obj()
    assert pod_requests(pod) == {"cpu": 2250, "memory": 64 * MIB}


def test_pod_level_resources_replace_the_sum() -> None:
    pod = make_pod().cpu("3").memory("1Gi").request("nvidia.com/gpu", 1).pod_level(cpu="1").obj()
    assert pod_requests(pod) == {"cpu": 1000, "memory": 1 << 30, "nvidia.com/gpu": 1}


def test_overhead_comes_on_top_of_pod_level_resources_too() -> None:
    pod = make_pod().cpu("3").pod_level(cpu="1").overhead(cpu="100m").obj()
    assert pod_requests(pod) == {"cpu": 1100}


def test_huge_pages_can_be_said_for_the_pod_and_other_resources_cannot() -> None:
    pod = make_pod().request("nvidia.com/gpu", 1).obj()
    requests: dict[str, str | int | float] = {"hugepages-2Mi": "4Mi", "nvidia.com/gpu": 5}
    pod.spec.resources = ResourceRequirements(requests=requests)
    assert pod_requests(pod) == {"nvidia.com/gpu": 1, "hugepages-2Mi": 4 * MIB}


def test_a_pod_level_limit_is_the_request_unless_containers_say_one() -> None:
    pod = make_pod().memory("1Gi").obj()
    pod.spec.resources = ResourceRequirements(limits={"cpu": "2", "memory": "4Gi"})
    assert pod_requests(pod) == {"cpu": 2000, "memory": 1 << 30}


def test_huge_pages_of_containers_become_those_of_a_pod_with_pod_level_resources() -> None:
    pod = make_pod().limit("hugepages-2Mi", "4Mi").pod_level(cpu="1").obj()
    assert pod_requests(pod) == {"cpu": 1000, "hugepages-2Mi": 4 * MIB}


def test_during_a_resize_the_larger_of_wish_and_promise_counts() -> None:
    assert pod_requests(resized(make_pod().cpu("1").obj(), cpu="2")) == {"cpu": 2000}
    assert pod_requests(resized(make_pod().cpu("3").obj(), cpu="2")) == {"cpu": 3000}


def test_an_infeasible_wish_does_not_count() -> None:
    wish = make_pod().cpu("3").condition("PodResizePending", reason="Infeasible").obj()
    assert pod_requests(resized(wish, cpu="2")) == {"cpu": 2000}
    deferred = make_pod().cpu("3").condition("PodResizePending", reason="Deferred").obj()
    assert pod_requests(resized(deferred, cpu="2")) == {"cpu": 3000}


def test_what_still_runs_counts_while_it_is_more_than_was_promised() -> None:
    pod = resized(make_pod().cpu("1").obj(), cpu="1")
    pod.status.container_statuses[0].resources = ResourceRequirements(requests={"cpu": "4"})
    assert pod_requests(pod) == {"cpu": 4000}


def test_what_the_status_says_of_the_whole_pod_replaces_its_containers_statuses() -> None:
    pod = resized(make_pod().cpu("1").obj(), cpu="8")
    pod.status.allocated_resources = {"cpu": "2"}
    pod.status.resources = ResourceRequirements(requests={"cpu": "3"})
    assert pod_requests(pod) == {"cpu": 3000}


def test_a_resize_of_pod_level_resources_counts_the_larger_too() -> None:
    pod = make_pod().pod_level(cpu="1").obj()
    pod.status.allocated_resources = {"cpu": "2"}
    pod.status.resources = ResourceRequirements(requests={"cpu": "1"})
    assert pod_requests(pod) == {"cpu": 2000}
    pod = make_pod().pod_level(cpu="9").condition("PodResizePending", reason="Infeasible").obj()
    pod.status.allocated_resources = {"cpu": "2"}
    pod.status.resources = ResourceRequirements(requests={"cpu": "1"})
    assert pod_requests(pod) == {"cpu": 2000}


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        (make_pod(), ASSUMED),
        (make_pod().cpu("0"), {"cpu": 0, "memory": 200 * MIB}),
        (make_pod().cpu("1").container(memory="1"), {"cpu": 1100, "memory": 200 * MIB + 1}),
        (make_pod().init(), ASSUMED),
        (make_pod().sidecar(), {"cpu": 200, "memory": 400 * MIB}),
        (make_pod().pod_level(cpu="2"), ASSUMED),
        (make_pod().overhead(cpu="1"), {"cpu": 1100, "memory": 200 * MIB}),
    ],
)
def test_scores_assume_what_a_container_does_not_say(
    pod: PodBuilder, expected: dict[str, int]
) -> None:
    assert pod_requests_nonzero(pod.obj()) == expected


def test_scores_read_pod_level_resources_once_the_pod_is_on_a_node() -> None:
    pod = make_pod().memory("1Gi").container().pod_level(cpu="2").obj()
    assert pod_requests_nonzero(pod) == {"cpu": 200, "memory": (1 << 30) + 200 * MIB}
    assert pod_requests_nonzero_on_node(pod) == {"cpu": 2000, "memory": 1 << 30}
    assert pod_requests_nonzero_on_node(make_pod().obj()) == ASSUMED


@given(st.lists(amounts, min_size=1), st.lists(st.tuples(st.booleans(), amounts)), amounts)
def test_a_pod_never_counts_for_less_than_it_uses_at_any_moment(
    containers: list[int], inits: list[tuple[bool, int]], overhead: int
) -> None:
    builder = make_pod().cpu(f"{containers[0]}m").overhead(cpu=f"{overhead}m")
    for more in containers[1:]:
        builder.container(cpu=f"{more}m")
    sidecars, moments = 0, [0]
    for is_sidecar, amount in inits:
        (builder.sidecar if is_sidecar else builder.init)(cpu=f"{amount}m")
        moments.append(sidecars + amount)
        sidecars += amount if is_sidecar else 0
    moments.append(sidecars + sum(containers))
    assert pod_requests(builder.obj()) == {"cpu": max(moments) + overhead}
