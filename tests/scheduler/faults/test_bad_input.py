"""Objects that are not what they should be are told so, and the others go on."""

from __future__ import annotations

import pytest

from bayplan.client import Untyped, merge
from bayplan.client.resources import EVENTS
from bayplan.kube.nodes import Node
from tests.scheduler.faults.clusters import NODES, FaultyCluster, claim, faulty_cluster, pod

pytestmark = [pytest.mark.whole, pytest.mark.virtual]


async def condition_message(it: FaultyCluster, name: str) -> str:
    """What events say of an object, by its name."""
    events = (await it.client.list(EVENTS)).items
    return " ".join(str(one.note) for one in events if one.regarding.name == name)


def condition_of(it: FaultyCluster, name: str) -> str:
    """What a pod's PodScheduled condition says."""
    conditions = it.truth.pod(name).get("status", {}).get("conditions") or []
    return next(
        (str(one.get("message")) for one in conditions if one["type"] == "PodScheduled"), ""
    )


async def test_a_pod_with_an_absurd_quantity_hears_of_it_by_event_and_condition() -> None:
    async with faulty_cluster() as it:
        it.replica(garbled={b'"cpu":"123m"': b'"cpu":"plenty"'})
        await it.create(pod("bad", "123m"), pod("good"))
        await it.settle()
        assert (it.truth.waiting(), list(it.truth.nodes())) == (["bad"], ["good"])
        assert "plenty" in await condition_message(it, "bad")
        assert "plenty" in condition_of(it, "bad")


async def test_a_pod_that_is_no_pod_hears_of_it_by_event() -> None:
    async with faulty_cluster() as it:
        it.replica(garbled={b'"terminationGracePeriodSeconds":77': b'"volumes":"many"'})
        await it.create(pod("bad", terminationGracePeriodSeconds=77), pod("good"))
        await it.settle()
        assert (it.truth.waiting(), list(it.truth.nodes())) == (["bad"], ["good"])
        assert "cannot be scheduled" in await condition_message(it, "bad")
        about = [one for one in (await it.client.list(EVENTS)).items if one.regarding.name == "bad"]
        assert {one.regarding.uid for one in about} == {it.truth.pod("bad")["metadata"]["uid"]}


@pytest.mark.parametrize("absurd", [b'"cpu":"many"', b'"cpu":[4]', b'"cpu":"-4"'])
async def test_a_node_that_cannot_be_read_is_not_used_and_told(absurd: bytes) -> None:
    async with faulty_cluster() as it:
        await it.client.patch(
            Node, "n-2", change=merge({"status": {"allocatable": {"cpu": "3777m"}}}),
            subresource="status",
        )  # fmt: skip
        it.replica(garbled={b'"cpu":"3777m"': absurd})
        await it.create(*(pod(f"p{number}", "1") for number in range(9)))
        await it.settle()
        assert set(it.truth.nodes().values()) == {"n-1", "n-3"}
        assert len(it.truth.waiting()) == 1
        assert "not used for scheduling" in await condition_message(it, "n-2")


async def test_claims_of_unknown_classes_and_unknown_claims_wait_alone() -> None:
    async with faulty_cluster() as it:
        it.replica()
        odd = claim("odd")
        spec = odd["spec"]
        assert isinstance(spec, dict)
        spec["storageClassName"] = "nobody-knows"
        await it.create(odd, pod("a", "100m", "odd"), pod("b", "100m", "missing"), pod("good"))
        await it.settle()
        assert (it.truth.waiting(), list(it.truth.nodes())) == (["a", "b"], ["good"])
        assert "pod has unbound immediate PersistentVolumeClaims" in condition_of(it, "a")
        assert 'persistentvolumeclaim "missing" not found' in condition_of(it, "b")


HOPELESS: dict[str, Untyped] = {
    "more than there is in the world": pod("bad", "9000000000000000"),
    "more than can be counted": pod("bad", "9" * 30),
    "labels that nobody has": pod("bad", nodeSelector={"no-such": "label"}),
    "a number that is none": pod(
        "bad",
        affinity={
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [
                        {"matchExpressions": [{"key": "k", "operator": "Gt", "values": ["x"]}]}
                    ]
                }
            }
        },
    ),
    "as many terms as fit": pod(
        "bad",
        affinity={
            "podAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": [
                    {"topologyKey": f"k{n}", "labelSelector": {"matchLabels": {"a": str(n)}}}
                    for n in range(300)
                ]
            }
        },
    ),
}


@pytest.mark.parametrize("what", HOPELESS)
async def test_a_hopeless_pod_says_why_and_the_others_go_on(what: str) -> None:
    async with faulty_cluster() as it:
        it.replica()
        await it.create(HOPELESS[what], pod("good"))
        await it.settle()
        assert (it.truth.waiting(), list(it.truth.nodes())) == (["bad"], ["good"])
        said = condition_of(it, "bad")
        assert f"/{NODES} nodes are available" in said or "cannot be scheduled: Pod" in said
        assert said[:100] in await condition_message(it, "bad")


async def test_huge_objects_are_taken_like_others() -> None:
    async with faulty_cluster() as it:
        it.replica()
        huge = pod("huge")
        meta = huge["metadata"]
        assert isinstance(meta, dict)
        meta["annotations"] = {f"example.com/a{n}": "x" * 2000 for n in range(100)}
        await it.create(huge, pod("good"))
        await it.settle()
        assert it.truth.waiting() == []
