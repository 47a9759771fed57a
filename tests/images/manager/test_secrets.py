"""A private image is not handed to a pod without its secret: against every runtime there is."""

from __future__ import annotations

from bayplan.images.credentials.pull_manager import CredentialVerification, VerificationPolicy
from bayplan.images.runtime.objects import ImageSpec
from tests.images.manager_fixture import ManagerFixture, pod_of
from tests.images.parts.registry import PASSWORD, USER, Registry
from tests.images.peers.fixtures import Push


async def test_a_private_image_is_pulled_with_the_pods_secret(
    fixture: ManagerFixture, guarded_registry: Registry, push: Push
) -> None:
    image = push(guarded_registry, "private:1").name
    fixture.cluster.add_secret("good", guarded_registry.host, USER, PASSWORD)
    assert (await fixture.ready(pod_of(image, secrets=("good",)))).pulled


async def test_a_pod_without_the_secret_does_not_get_the_image_that_is_there(
    fixture: ManagerFixture, guarded_registry: Registry, push: Push
) -> None:
    image = push(guarded_registry, "private:2").name
    fixture.cluster.add_secret("good", guarded_registry.host, USER, PASSWORD)
    await fixture.ready(pod_of(image, "owner", secrets=("good",)))
    assert (await fixture.waiting(pod_of(image, "stranger"))).reason == "ErrImagePull"
    assert not (await fixture.ready(pod_of(image, "friend", secrets=("good",)))).pulled
    hidden = await fixture.waiting(pod_of(image, "sly", policy="Never"))
    assert hidden.reason == "ErrImageNeverPull"
    assert "is not on the node" in hidden.message


async def test_the_memory_of_secrets_survives_a_restart(
    fixture: ManagerFixture, guarded_registry: Registry, push: Push
) -> None:
    image = push(guarded_registry, "private:3").name
    fixture.cluster.add_secret("good", guarded_registry.host, USER, PASSWORD)
    await fixture.ready(pod_of(image, "owner", secrets=("good",)))
    fixture.restart()
    fixture.manager.pull_manager.recover(await fixture.runtime.list_images())
    assert (await fixture.waiting(pod_of(image, "stranger"))).reason == "ErrImagePull"
    assert not (await fixture.ready(pod_of(image, "friend", secrets=("good",)))).pulled


async def test_credentials_are_tried_in_turn(
    fixture: ManagerFixture, guarded_registry: Registry, push: Push
) -> None:
    image = push(guarded_registry, "private:4").name
    fixture.cluster.add_secret("bad", guarded_registry.host, USER, "wrong")
    fixture.cluster.add_secret("good", guarded_registry.host, USER, PASSWORD)
    assert (await fixture.ready(pod_of(image, secrets=("bad", "good")))).pulled
    # Only the one that opened the image is remembered.
    assert (
        await fixture.waiting(pod_of(image, "other", secrets=("bad",)))
    ).reason == "ErrImagePull"


async def test_no_secret_in_errors_and_events(
    fixture: ManagerFixture, guarded_registry: Registry, push: Push
) -> None:
    image = push(guarded_registry, "private:5").name
    fixture.cluster.add_secret("bad", guarded_registry.host, USER, "wr0ng-passw0rd")
    outcome = await fixture.waiting(pod_of(image, secrets=("bad",)))
    assert "wr0ng-passw0rd" not in repr((outcome, fixture.cluster.events))


async def test_a_missing_secret_is_told_of_and_the_others_are_used(
    fixture: ManagerFixture, guarded_registry: Registry, push: Push
) -> None:
    image = push(guarded_registry, "private:6").name
    fixture.cluster.add_secret("good", guarded_registry.host, USER, PASSWORD)
    await fixture.ready(pod_of(image, secrets=("missing", "good")))
    assert "FailedToRetrieveImagePullSecret" in fixture.cluster.reasons()


async def test_an_image_that_was_there_before_us_is_open_unless_always_verified(
    fixture: ManagerFixture, guarded_registry: Registry, push: Push
) -> None:
    image = push(guarded_registry, "private:7").name
    fixture.cluster.add_secret("good", guarded_registry.host, USER, PASSWORD)
    await fixture.ready(pod_of(image, secrets=("good",)))
    fixture.folder = fixture.folder.with_name("blank")
    fixture.restart()
    assert not (await fixture.ready(pod_of(image, "stranger"))).pulled
    fixture.verification = CredentialVerification(VerificationPolicy.ALWAYS)
    fixture.restart()
    assert (await fixture.waiting(pod_of(image, "stranger"))).reason == "ErrImagePull"


async def test_naming_a_private_image_by_its_digest_does_not_open_it(
    fixture: ManagerFixture, guarded_registry: Registry, push: Push
) -> None:
    image = push(guarded_registry, "private:8").name
    fixture.cluster.add_secret("good", guarded_registry.host, USER, PASSWORD)
    owner = await fixture.ready(pod_of(image, "owner", secrets=("good",)))
    listed = await fixture.runtime.image_status(ImageSpec(owner.key.id))
    assert listed is not None
    by_digest = next(name for name in listed.digests if guarded_registry.host in name)
    assert (await fixture.waiting(pod_of(by_digest, "stranger"))).reason == "ErrImagePull"
    elsewhere = by_digest.replace("/private@", "/elsewhere@")
    friend = pod_of(elsewhere, "friend", policy="Always", secrets=("good",))
    assert (await fixture.waiting(friend)).reason == "ErrImagePull", "that repository has it not"
