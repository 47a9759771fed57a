"""A container's image is made sure of, by policy, with back-off: against every runtime there is."""

from __future__ import annotations

import pytest

from tests.images.desk import Desk, pod_of
from tests.images.parts.registry import Registry
from tests.images.peers.fixtures import Push


async def test_an_absent_image_is_pulled_and_told_of(
    desk: Desk, registry: Registry, push: Push
) -> None:
    image = push(registry, "absent:1")
    outcome = await desk.ready(pod_of(image.name))
    assert outcome.pulled
    assert outcome.key.id == image.id
    assert desk.cluster.reasons() == ["Pulling", "Pulled"]
    assert " bytes" in desk.cluster.events[-1][2]


async def test_a_present_image_is_not_pulled_again(
    desk: Desk, registry: Registry, push: Push
) -> None:
    image = push(registry, "present:1").name
    first = await desk.ready(pod_of(image))
    again = await desk.ready(pod_of(image, "other"))
    assert (again.key, again.pulled) == (first.key, False)
    assert desk.cluster.events[-1][:2] == ("default/other", "Pulled")
    assert "on the node already" in again.message


async def test_always_asks_the_registry_every_time(
    desk: Desk, registry: Registry, push: Push
) -> None:
    image = push(registry, "always:1").name
    await desk.ready(pod_of(image, policy="Always"))
    newer = push(registry, "always:1")
    assert (await desk.ready(pod_of(image))).key.id != newer.id
    assert (await desk.ready(pod_of(image, policy="Always"))).key.id == newer.id


async def test_never_pulls_nothing(desk: Desk, registry: Registry, push: Push) -> None:
    image = push(registry, "never:1").name
    outcome = await desk.waiting(pod_of(image, policy="Never"))
    assert outcome.reason == "ErrImageNeverPull"
    assert desk.cluster.reasons() == ["ErrImageNeverPull"]
    await desk.ready(pod_of(image))
    assert not (await desk.ready(pod_of(image, policy="Never"))).pulled


async def test_a_name_that_cannot_be_read_is_refused(desk: Desk) -> None:
    outcome = await desk.waiting(pod_of("Not A Name"))
    assert outcome.reason == "InvalidImageName"
    assert desk.cluster.reasons() == ["InspectFailed"]


async def test_a_failed_pull_backs_off_and_says_why(desk: Desk, registry: Registry) -> None:
    pod = pod_of(f"{registry.host}/no-such-image:1")
    failed = await desk.waiting(pod)
    assert failed.reason == "ErrImagePull"
    backing_off = await desk.waiting(pod)
    assert backing_off.reason == "ImagePullBackOff"
    assert failed.message in backing_off.message
    assert backing_off.retry_after == pytest.approx(10)
    assert desk.cluster.reasons() == ["Pulling", "Failed", "BackOff"]


async def test_after_its_back_off_a_pull_is_tried_again(
    desk: Desk, registry: Registry, push: Push
) -> None:
    name = f"{desk.folder.parent.name}:1"
    pod = pod_of(f"{registry.host}/{name}")
    await desk.waiting(pod)
    push(registry, name)
    assert (await desk.waiting(pod)).reason == "ImagePullBackOff"
    await desk.clock.advance(10)
    assert (await desk.ready(pod)).pulled


async def test_one_pods_back_off_is_not_anothers(desk: Desk, registry: Registry) -> None:
    image = f"{registry.host}/no-such-image:2"
    await desk.waiting(pod_of(image, "one"))
    assert (await desk.waiting(pod_of(image, "other"))).reason == "ErrImagePull"


async def test_requests_are_counted_by_policy_and_presence(
    desk: Desk, registry: Registry, push: Push
) -> None:
    image = push(registry, "counted:1").name
    await desk.ready(pod_of(image))
    await desk.ready(pod_of(image))
    await desk.ready(pod_of(image, policy="Always"))
    metrics = desk.metrics()
    name = "kubelet_image_manager_ensure_image_requests_total"
    for policy, present, required in (
        ("ifnotpresent", "false", "true"),
        ("ifnotpresent", "true", "false"),
        ("always", "unknown", "true"),
    ):
        labels = f'present_locally="{present}",pull_policy="{policy}",pull_required="{required}"'
        assert f"{name}{{{labels}}} 1.0" in metrics
    assert 'kubelet_image_pull_duration_seconds_count{image_size_in_bytes="0-10MB"} 2.0' in metrics
    assert "kubelet_imagemanager_ondisk_pulledrecords 1.0" in metrics
