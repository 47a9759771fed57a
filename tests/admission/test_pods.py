"""What no pod may say: attach limits as requests, annotations that cannot mean anything."""

from __future__ import annotations

from typing import Any

import pytest

from tests.admission.reviews import GATE, GROUP, ask, make_app, review
from tests.admission.test_gates import pod

EBS = "attachable-volumes-aws-ebs"


async def refusal(made: dict[str, Any], **options: Any) -> str:
    answer = await ask(make_app(**options), "/pods/validate", review("pods", "CREATE", made))
    return answer.refusal


def asking(name: str, where: str = "requests") -> dict[str, Any]:
    return {"name": "c", "resources": {where: {"cpu": "1", name: "1"}}}


@pytest.mark.parametrize(
    ("spec", "place"),
    [
        ({"containers": [asking(EBS)]}, f"spec.containers[0].resources.requests[{EBS}]"),
        ({"containers": [asking(EBS, "limits")]}, "spec.containers[0].resources.limits"),
        ({"initContainers": [{}, asking(EBS)]}, "spec.initContainers[1].resources.requests"),
        ({"resources": {"limits": {EBS: 1}}}, "spec.resources.limits"),
        ({"overhead": {EBS: 1}}, "spec.overhead"),
        ({"containers": [asking("attachable-volumes-csi-a.b")]}, "csi-a.b"),
        ({"containers": [asking("storage-attach-limits-gce-pd")]}, "storage-attach-limits-gce-pd"),
    ],
)
async def test_attach_limits_cannot_be_asked_for(spec: dict[str, Any], place: str) -> None:
    said = await refusal(pod(**spec))
    assert place in said
    assert "which a pod cannot request" in said


async def test_pods_of_every_scheduler_are_refused_attach_limits() -> None:
    assert await refusal(pod(schedulerName="default-scheduler", containers=[asking(EBS)]))


async def test_attach_limits_are_let_in_with_the_feature_off() -> None:
    made = pod(containers=[asking(EBS)])
    for gates, refused in (("", True), ("AttachVolumeLimit=false", False), ("", True)):
        assert bool(await refusal(made, gates=gates)) is refused


async def test_ordinary_resources_are_let_in() -> None:
    asked = {"cpu": "1", "memory": "1Gi", "nvidia.com/gpu": 1, "hugepages-2Mi": "4Mi"}
    assert not await refusal(pod(containers=[{"name": "c", "resources": {"limits": asked}}]))


@pytest.mark.parametrize(
    ("annotations", "said"),
    [
        ({f"{GROUP}/group-name": "Not A Name"}, "cannot be the name of a PodGroup"),
        ({"scheduling.k8s.io/group-name": "a/b"}, "cannot be the name of a PodGroup"),
        (
            {"scheduling.k8s.io/group-name": "a", f"{GROUP}/group-name": "b"},
            "name more than one PodGroup",
        ),
        ({f"{GROUP}/queue-name": "-"}, "cannot be the name of a queue"),
        ({"volcano.sh/queue-name": "a", f"{GROUP}/queue-name": "b"}, "name more than one queue"),
        ({f"{GROUP}/group-min-member": "0"}, "must be a whole number, 1 or more"),
        ({f"{GROUP}/group-min-member": "two"}, "must be a whole number, 1 or more"),
        ({f"{GROUP}/group-min-member": "9" * 400}, "must be a whole number, 1 or more"),
        ({f"{GROUP}/group-min-member": "³"}, "must be a whole number, 1 or more"),
        ({GATE: "yes"}, "must be true or false"),
        ({"volcano.sh/preemptable": "maybe"}, "must be true or false"),
    ],
)
async def test_annotations_without_sense_are_refused(
    annotations: dict[str, str], said: str
) -> None:
    assert said in await refusal(pod(annotations))
    assert not await refusal(pod(annotations, schedulerName="default-scheduler"))


async def test_annotations_that_agree_are_let_in() -> None:
    good = {
        "scheduling.k8s.io/group-name": "train",
        f"{GROUP}/group-name": "train",
        f"{GROUP}/queue-name": "research",
        f"{GROUP}/group-min-member": "4",
        "volcano.sh/preemptable": "false",
        GATE: "true",
        "example.com/other": "anything",
    }
    assert not await refusal(pod(good))


async def test_every_fault_is_named_at_once() -> None:
    made = pod({GATE: "yes"}, containers=[asking(EBS)])
    answer = await ask(make_app(), "/pods/validate", review("pods", "CREATE", made))
    status = answer.response["status"]
    assert (status["code"], status["reason"]) == (422, "Invalid")
    assert len(status["details"]["causes"]) == 2
