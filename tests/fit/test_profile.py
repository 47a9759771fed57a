"""Pods of several schedulers in one snapshot, each judged as its own scheduler would."""

from __future__ import annotations

from bayplan.fit import Profile, Snapshot
from bayplan.fit.explanation import explain
from bayplan.kube.meta import KubeObject
from tests.builders import (
    make_csinode,
    make_node,
    make_pod,
    make_pvc,
    make_storage_class,
)

EBS = "ebs.csi.aws.com"
DRIVERLESS: tuple[KubeObject, ...] = (
    make_node("bare").obj(),
    make_storage_class("fast", EBS).waits().obj(),
    make_pvc("c").storage_class("fast").obj(),
    make_node("full").capacity({"attachable-volumes-csi-ebs.csi.aws.com": "0"}).obj(),
    make_csinode("full").driver(EBS).obj(),
)
THEIRS = make_pod("theirs").claim("c").obj()
OURS = make_pod("ours").claim("c").scheduler("bayplan").obj()
SOMEBODYS = make_pod("somebodys").claim("c").scheduler("fancy").obj()


def where(profile: Profile) -> list[set[str]]:
    snapshot = Snapshot(DRIVERLESS, profile=profile)
    found = (explain(snapshot, one, with_fixes=False) for one in (THEIRS, OURS, SOMEBODYS))
    return [{answer.name for answer in one.nodes if answer.fits} for one in found]


def test_a_pod_is_judged_by_the_rules_of_the_scheduler_that_it_names() -> None:
    everywhere = {"bare", "full"}
    assert where(Profile().by_scheduler()) == [everywhere, set(), everywhere]


def test_all_pods_can_be_judged_by_either() -> None:
    assert where(Profile()) == [set(), set(), set()]
    everywhere = {"bare", "full"}
    assert where(Profile().as_kube_scheduler()) == [everywhere] * 3


def test_limits_by_other_rules_follow_their_nodes() -> None:
    snapshot = Snapshot(DRIVERLESS, profile=Profile().by_scheduler())
    assert snapshot.refusal(THEIRS, "full") is None
    snapshot.put(make_csinode("full").driver(EBS, 0).obj())
    refused = snapshot.refusal(THEIRS, "full")
    assert refused is not None
    assert refused.reasons == ("node(s) exceed max volume count",)
    for number in range(70):  # so that columns grow
        snapshot.put(make_node(f"more-{number}").obj())
    assert snapshot.refusal(THEIRS, "full") is not None
    assert snapshot.refusal(THEIRS, "more-69") is None


def test_the_line_of_kube_scheduler_has_the_words_of_its_plugin_for_claims() -> None:
    objects = [make_node("n").capacity(cpu="1").obj(), *DRIVERLESS[1:3]]
    big = make_pod("big").cpu("2").obj()
    said = [
        explain(Snapshot(objects, profile=profile), big, with_fixes=False).message
        for profile in (Profile().as_kube_scheduler(), Profile())
    ]
    rest = "preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."
    line = "0/1 nodes are available: 1 Insufficient cpu."
    assert said == [f"{line} no new claims to deallocate, {rest}", f"{line} {rest}"]


def test_the_line_of_kube_scheduler_ends_early_for_a_pod_refused_before_nodes() -> None:
    pod = make_pod("p").claim("gone").obj()
    line = '0/1 nodes are available: persistentvolumeclaim "gone" not found.'
    said = [
        explain(Snapshot([make_node("n").obj()], profile=profile), pod, with_fixes=False).message
        for profile in (Profile().as_kube_scheduler(), Profile())
    ]
    rest = "preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."
    assert said == [f"{line} not found", f"{line} {rest}"]
