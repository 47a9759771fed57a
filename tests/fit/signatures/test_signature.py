"""Pods are told apart by the labels that some selector reads, and by no others."""

from __future__ import annotations

import pytest

from bayplan.fit import Snapshot
from bayplan.fit.evaluation.ranks import Evaluation
from bayplan.kube.meta import LabelSelector
from bayplan.kube.pods import Pod, PodAffinityTerm
from bayplan.kube.workloads import Service
from tests.builders import (
    PodBuilder,
    expression,
    make_node,
    make_pod,
    make_service,
    name_term,
    node_term,
    selector,
)

HOST = "kubernetes.io/hostname"
JOB = "job-name"
ZONE = "topology.kubernetes.io/zone"


def job_pod(job: str, namespace: str = "batch") -> PodBuilder:
    """A pod of a job, which labels it with its name."""
    return make_pod(f"{job}-x", namespace).cpu("100m").label(JOB, job)


def make_snapshot() -> Snapshot:
    """Four nodes."""
    return Snapshot(
        make_node(f"n{index}")
        .capacity(cpu="8", memory="8Gi", pods=20)
        .label(HOST, f"n{index}")
        .obj()
        for index in range(4)
    )


def alike(snapshot: Snapshot, one: Pod, other: Pod) -> bool:
    """Whether two pods are one signature."""
    return snapshot.evaluation(one) is snapshot.evaluation(other)


def test_jobs_that_differ_by_name_are_one_shape() -> None:
    assert alike(make_snapshot(), job_pod("a").obj(), job_pod("b").obj())


def test_a_service_tells_pods_of_its_own_namespace_apart_while_it_is_there() -> None:
    snapshot = make_snapshot()
    service = make_service("s", "batch").obj()
    service.spec.selector = {JOB: "a"}
    one, other = job_pod("a").obj(), job_pod("b").obj()
    snapshot.put(service)
    assert not alike(snapshot, one, other)
    assert alike(snapshot, job_pod("a", "else").obj(), job_pod("b", "else").obj())
    snapshot.delete(Service, service.key)
    assert alike(snapshot, one, other)


@pytest.mark.parametrize(
    "meant",
    [selector({JOB: "a"}), expression(JOB, "NotIn", "a"), expression(JOB, "DoesNotExist")],
)
def test_a_running_pods_term_tells_pods_apart_in_the_namespaces_it_speaks_of(
    meant: LabelSelector,
) -> None:
    snapshot = make_snapshot()
    term = PodAffinityTerm(topology_key=HOST, label_selector=meant, namespaces=["batch"])
    one, other, third = job_pod("a").obj(), job_pod("b").obj(), make_pod("c", "batch").cpu("100m")
    assert alike(snapshot, one, third.obj())
    snapshot.put(make_pod("guard", "other").affinity_term(term, anti=True).node("n0").obj())
    assert not alike(snapshot, one, third.obj())
    assert alike(snapshot, job_pod("a", "else").obj(), job_pod("b", "else").obj())
    kept_out = [pod for pod in (one, other, third.obj()) if snapshot.refusal(pod, "n0")]
    wanted = {
        "In": [one.key],
        "NotIn": [other.key, "batch/c"],
        "DoesNotExist": ["batch/c"],
    }
    operator = meant.match_expressions[0].operator if meant.match_expressions else "In"
    assert [pod.key for pod in kept_out] == wanted[operator]


def test_a_term_that_picks_namespaces_by_label_speaks_of_all() -> None:
    snapshot = make_snapshot()
    term = PodAffinityTerm(
        topology_key=HOST, label_selector=selector({JOB: "a"}), namespace_selector=LabelSelector()
    )
    snapshot.put(make_pod("guard", "other").affinity_term(term, anti=True).node("n0").obj())
    assert snapshot.refusal(job_pod("a", "anywhere").obj(), "n0")
    assert not snapshot.refusal(job_pod("b", "anywhere").obj(), "n0")


def test_pods_that_were_counted_as_one_are_divided_when_a_constraint_reads_their_label() -> None:
    snapshot = make_snapshot()
    for node, job in [("n0", "a"), ("n1", "a"), ("n2", "b")]:
        snapshot.put(job_pod(job).label("x", node).node(node).obj())
        snapshot.put(make_pod(f"on-{node}-{job}", "batch").label(JOB, job).node(node).obj())
    spread = job_pod("b").spread(HOST, 1, "DoNotSchedule", selector({JOB: "b"})).obj()
    assert {node for node in ("n0", "n1", "n2", "n3") if snapshot.refusal(spread, node)} == {"n2"}


def test_a_pods_own_constraint_with_match_label_keys_reads_its_own_label() -> None:
    snapshot = make_snapshot()

    def spread(job: str) -> Pod:
        pod = job_pod(job).labels(app="web")
        return pod.spread(
            HOST, 1, "DoNotSchedule", selector(app="web"), match_label_keys=[JOB]
        ).obj()

    assert not alike(snapshot, spread("a"), spread("b"))
    placed = spread("a")
    placed.spec.node_name = "n0"
    snapshot.put(placed)
    again = spread("a")
    again.metadata.name = "again"
    assert snapshot.refusal(again, "n0")
    assert not snapshot.refusal(spread("b"), "n0")


def test_a_thousand_jobs_leave_one_standing_answer() -> None:
    snapshot = make_snapshot()
    asked = {id(snapshot.evaluation(job_pod(f"job-{index}").obj())) for index in range(1000)}
    assert len(asked) == 1
    assert isinstance(snapshot.evaluation(job_pod("job-0").obj()), Evaluation)


def daemon(node: str) -> PodBuilder:
    """A pod of a DaemonSet, for one node."""
    return make_pod(f"daemon-{node}").cpu("3").label("app", "daemon").node_affinity(name_term(node))


def test_pods_that_name_one_node_each_share_their_answers() -> None:
    snapshot = make_snapshot()
    for node in ("n0", "n1", "n2", "n3"):
        assert snapshot.place(daemon(node).obj()).node == node
    signatures = {id(record.signature) for record in snapshot.cluster.pods.by_key.values()}
    assert len(signatures) == 1


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("wanted", ["n0", "n3", "nowhere"])
@pytest.mark.parametrize("where", ["zone-a", "", "zone-b"])
def test_a_pod_that_names_its_node_is_decided_on_as_if_all_were_asked(
    full: bool, wanted: str, where: str
) -> None:
    snapshot = make_snapshot()
    if full:
        snapshot.put(make_pod("large").cpu("7").node("n0").obj())
    snapshot.put(make_node("n3").capacity(cpu="8", pods=9).zone("zone-a").taint("t").obj())
    term = name_term(wanted)
    if where:
        term.match_expressions = node_term(ZONE, "In", where).match_expressions
    pod = make_pod("p").cpu("3").toleration("t").node_affinity(term).obj()
    named = snapshot.cluster.slots.by_name
    assert snapshot.decide(pod) == snapshot.decide(pod, among=list(named))
    evaluation = snapshot.evaluation(pod)
    assert isinstance(evaluation, Evaluation)
    slot = evaluation.best()
    assert snapshot.decide(pod).node == (snapshot.cluster.slots.names[slot] if slot >= 0 else None)
