"""A container's image is made sure of, by policy, with back-off: against every runtime there is."""

from __future__ import annotations

import pytest

from tests.images.manager_fixture import ManagerFixture, pod_of
from tests.images.parts.registry import Registry
from tests.images.peers.fixtures import Push


async def test_an_absent_image_is_pulled_and_told_of(
    fixture: ManagerFixture, registry: Registry, push: Push
) -> None:
    image = push(registry, "absent:1")
    outcome = await fixture.ready(pod_of(image.name))
    assert outcome.pulled
    assert outcome.key.id == image.id
    assert fixture.cluster.reasons() == ["Pulling", "Pulled"]
    assert " bytes" in fixture.cluster.events[-1][2]


async def test_a_present_image_is_not_pulled_again(
    fixture: ManagerFixture, registry: Registry, push: Push
) -> None:
    image = push(registry, "present:1").name
    first = await fixture.ready(pod_of(image))
    again = await fixture.ready(pod_of(image, "other"))
    assert (again.key, again.pulled) == (first.key, False)
    assert fixture.cluster.events[-1][:2] == ("default/other", "Pulled")
    assert "on the node already" in again.message


async def test_always_asks_the_registry_every_time(
    fixture: ManagerFixture, registry: Registry, push: Push
) -> None:
    image = push(registry, "always:1").name
    await fixture.ready(pod_of(image, policy="Always"))
    newer = push(registry, "always:1")
    assert (await fixture.ready(pod_of(image))).key.id != newer.id
    assert (await fixture.ready(pod_of(image, policy="Always"))).key.id == newer.id


async def test_never_pulls_nothing(fixture: ManagerFixture, registry: Registry, push: Push) -> None:
    image = push(registry, "never:1").name
    outcome = await fixture.waiting(pod_of(image, policy="Never"))
    assert outcome.reason == "ErrImageNeverPull"
    assert fixture.cluster.reasons() == ["ErrImageNeverPull"]
    await fixture.ready(pod_of(image))
    assert not (await fixture.ready(pod_of(image, policy="Never"))).pulled


async def test_a_name_that_cannot_be_read_is_refused(fixture: ManagerFixture) -> None:
    outcome = await fixture.waiting(pod_of("Not A Name"))
    assert outcome.reason == "InvalidImageName"
    assert fixture.cluster.reasons() == ["InspectFailed"]


async def test_a_failed_pull_backs_off_and_says_why(
    fixture: ManagerFixture, registry: Registry
) -> None:
    pod = pod_of(f"{registry.host}/no-such-image:1")
    failed = await fixture.waiting(pod)
    assert failed.reason == "ErrImagePull"
    backing_off = await fixture.waiting(pod)
    assert backing_off.reason == "ImagePullBackOff"
    assert failed.message in backing_off.message
    assert backing_off.retry_after == pytest.approx(10)
    assert fixture.cluster.reasons() == ["Pulling", "Failed", "BackOff"]


async def test_after_its_back_off_a_pull_is_tried_again(
    fixture: ManagerFixture, registry: Registry, push: Push
) -> None:
    name = f"{fixture.folder.parent.name}:1"
    pod = pod_of(f"{registry.host}/{name}")
    await fixture.waiting(pod)
    push(registry, name)
    assert (await fixture.waiting(pod)).reason == "ImagePullBackOff"
    await fixture.clock.advance(10)
    assert (await fixture.ready(pod)).pulled


async def test_one_pods_back_off_is_not_anothers(
    fixture: ManagerFixture, registry: Registry
) -> None:
    image = f"{registry.host}/no-such-image:2"
    await fixture.waiting(pod_of(image, "one"))
    assert (await fixture.waiting(pod_of(image, "other"))).reason == "ErrImagePull"


async def test_requests_are_counted_by_policy_and_presence(
    fixture: ManagerFixture, registry: Registry, push: Push
) -> None:
    image = push(registry, "counted:1").name
    await fixture.ready(pod_of(image))
    await fixture.ready(pod_of(image))
    await fixture.ready(pod_of(image, policy="Always"))
    metrics = fixture.metrics()
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
