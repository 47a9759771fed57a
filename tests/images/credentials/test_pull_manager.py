"""An image that a secret opened is not handed to a pod without it, across restarts and crashes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bayplan.base.clock import START
from bayplan.images.credentials.keyring import Credential, SecretSource
from bayplan.images.credentials.pull_manager import (
    CredentialVerification,
    ImagePullManager,
    MustPullResult,
    VerificationPolicy,
)
from bayplan.images.credentials.records import ImagePullCredentials, PullKey, PullRecordFiles
from bayplan.images.runtime.objects import Image, ImageKey, RegistryAuth
from tests.clocks import VirtualClock

REF = "sha256:" + "1" * 64
KEY = PullKey("quay.io/app:1", "hyperv")
ALWAYS = CredentialVerification(VerificationPolicy.ALWAYS)


def credential(password: str, name: str = "pull", namespace: str = "team") -> Credential:
    source = SecretSource(namespace, name, f"uid-{namespace}-{name}")
    return Credential(RegistryAuth(username="ann", password=password), source)


def pull_manager(
    folder: Path, verification: CredentialVerification | None = None
) -> ImagePullManager:
    return ImagePullManager(
        PullRecordFiles(folder), verification or CredentialVerification(), VirtualClock()
    )


async def must_attempt_pull(
    pull_manager: ImagePullManager, *offered: Credential, key: PullKey = KEY
) -> MustPullResult:
    async def credentials() -> Sequence[Credential]:
        return offered

    return await pull_manager.must_attempt_pull(key, ImageKey(REF, key.handler), credentials)


def pulled(pull_manager: ImagePullManager, *, by: Credential | None, key: PullKey = KEY) -> None:
    pull_manager.record_pull_intent(key)
    pull_manager.record_image_pulled(key, ImageKey(REF, key.handler), by)


async def test_a_pod_with_the_secret_may_use_the_image(tmp_path: Path) -> None:
    known = pull_manager(tmp_path)
    pulled(known, by=credential("x"))
    assert await must_attempt_pull(known, credential("x")) is MustPullResult.RECORD_FOUND


async def test_a_pod_without_the_secret_must_prove_itself(tmp_path: Path) -> None:
    known = pull_manager(tmp_path)
    pulled(known, by=credential("x"))
    assert await must_attempt_pull(known) is MustPullResult.MUST_AUTHENTICATE
    assert (
        await must_attempt_pull(known, credential("y", name="other"))
        is MustPullResult.MUST_AUTHENTICATE
    )


async def test_the_same_content_in_another_secret_is_enough(tmp_path: Path) -> None:
    known = pull_manager(tmp_path)
    pulled(known, by=credential("x"))
    assert (
        await must_attempt_pull(known, credential("x", namespace="other"))
        is MustPullResult.RECORD_FOUND
    )


async def test_a_rotated_secret_is_still_the_same_secret(tmp_path: Path) -> None:
    known = pull_manager(tmp_path)
    pulled(known, by=credential("old"))
    assert await must_attempt_pull(known, credential("new")) is MustPullResult.RECORD_FOUND
    # The new content was learnt, so that a copy of it now opens the image as well.
    assert (
        await must_attempt_pull(known, credential("new", name="copy"))
        is MustPullResult.RECORD_FOUND
    )


@pytest.mark.parametrize("by", [None, Credential(RegistryAuth(username="node"))])
async def test_what_the_node_can_pull_is_open_to_every_pod(
    tmp_path: Path, by: Credential | None
) -> None:
    known = pull_manager(tmp_path)
    pulled(known, by=by)
    assert await must_attempt_pull(known) is MustPullResult.RECORD_FOUND


async def test_one_handlers_record_does_not_open_anothers_image(tmp_path: Path) -> None:
    known = pull_manager(tmp_path, ALWAYS)
    pulled(known, by=None)
    other = PullKey(KEY.image, "process")
    assert await must_attempt_pull(known, key=other) is MustPullResult.MUST_AUTHENTICATE


async def test_on_a_runtime_without_handlers_no_class_gets_round_a_secret(tmp_path: Path) -> None:
    known = pull_manager(tmp_path)
    listed = ImageKey(REF)
    known.record_pull_intent(KEY)

    async def nothing() -> Sequence[Credential]:
        return ()

    plain = PullKey(KEY.image)
    assert (
        await known.must_attempt_pull(plain, listed, nothing) is MustPullResult.MUST_AUTHENTICATE
    ), "under way"
    known.record_image_pulled(KEY, listed, credential("x"))
    assert await known.must_attempt_pull(plain, listed, nothing) is MustPullResult.MUST_AUTHENTICATE
    restarted = pull_manager(tmp_path)
    restarted.prune_unknown_records([listed], VirtualClock(START + timedelta(days=1)).now())
    assert (
        await restarted.must_attempt_pull(plain, listed, nothing)
        is MustPullResult.MUST_AUTHENTICATE
    )


async def test_a_cut_off_pull_of_a_class_guards_the_image_listed_without_it(tmp_path: Path) -> None:
    pull_manager(tmp_path).record_pull_intent(KEY)
    restarted = pull_manager(tmp_path)
    restarted.recover([Image(REF, tags=(KEY.image,))])
    assert (
        await must_attempt_pull(restarted, key=PullKey(KEY.image))
        is MustPullResult.MUST_AUTHENTICATE
    )


async def test_another_name_of_the_same_image_is_verified_by_itself(tmp_path: Path) -> None:
    known = pull_manager(tmp_path)
    pulled(known, by=None)
    other = PullKey("quay.io/private:1", KEY.handler)
    assert await must_attempt_pull(known, key=other) is MustPullResult.MUST_AUTHENTICATE


@pytest.mark.parametrize(
    ("verification", "pulled_before", "expected"),
    [
        (CredentialVerification(VerificationPolicy.NEVER), True, MustPullResult.POLICY_ALLOWED),
        (CredentialVerification(), False, MustPullResult.POLICY_ALLOWED),
        (CredentialVerification(), True, MustPullResult.MUST_AUTHENTICATE),
        (ALWAYS, False, MustPullResult.MUST_AUTHENTICATE),
        (
            CredentialVerification(VerificationPolicy.NEVER_ALLOWLISTED, ("quay.io/app",)),
            True,
            MustPullResult.POLICY_ALLOWED,
        ),
        (
            CredentialVerification(VerificationPolicy.NEVER_ALLOWLISTED, ("quay.io/*",)),
            True,
            MustPullResult.POLICY_ALLOWED,
        ),
        (
            CredentialVerification(VerificationPolicy.NEVER_ALLOWLISTED, ("quay.io/ap",)),
            False,
            MustPullResult.MUST_AUTHENTICATE,
        ),
    ],
)
async def test_the_policy_says_which_images_are_verified(
    tmp_path: Path,
    verification: CredentialVerification,
    pulled_before: bool,
    expected: MustPullResult,
) -> None:
    known = pull_manager(tmp_path, verification)
    if pulled_before:
        pulled(known, by=credential("x"))
    assert await must_attempt_pull(known) is expected


@pytest.mark.parametrize(
    "pattern", ["", " quay.io/app", "quay.io/app:1", "a*b", "*", "/*", "Q/*/*"]
)
def test_a_wrong_pattern_is_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match=r"never verified|may be given"):
        CredentialVerification(VerificationPolicy.NEVER_ALLOWLISTED, (pattern,))


async def test_the_memory_survives_a_restart(tmp_path: Path) -> None:
    pulled(pull_manager(tmp_path), by=credential("x"))
    assert (
        await must_attempt_pull(pull_manager(tmp_path), credential("x"))
        is MustPullResult.RECORD_FOUND
    )
    assert await must_attempt_pull(pull_manager(tmp_path)) is MustPullResult.MUST_AUTHENTICATE


async def test_a_pull_cut_off_by_a_crash_vouches_for_nobody(tmp_path: Path) -> None:
    pull_manager(tmp_path).record_pull_intent(KEY)
    restarted = pull_manager(tmp_path)
    assert await must_attempt_pull(restarted, credential("x")) is MustPullResult.MUST_AUTHENTICATE
    restarted.recover([Image(REF, tags=(KEY.image,), handler=KEY.handler)])
    assert restarted.counts() == (0, 1)
    assert await must_attempt_pull(restarted, credential("x")) is MustPullResult.MUST_AUTHENTICATE


async def test_recovery_knows_a_familiar_name_in_the_runtimes_form(tmp_path: Path) -> None:
    pull_manager(tmp_path).record_pull_intent(PullKey("busybox"))
    restarted = pull_manager(tmp_path)
    restarted.recover([Image(REF, tags=("docker.io/library/busybox:latest",))])
    assert restarted.counts() == (0, 1)


def test_recovery_leaves_another_handlers_announcement(tmp_path: Path) -> None:
    pull_manager(tmp_path).record_pull_intent(KEY)
    restarted = pull_manager(tmp_path)
    restarted.recover([Image(REF, tags=(KEY.image,), handler="process")])
    assert restarted.counts() == (1, 0)


def test_a_failed_pull_leaves_nothing(tmp_path: Path) -> None:
    known = pull_manager(tmp_path)
    known.record_pull_intent(KEY)
    known.record_pull_intent(KEY)
    known.record_pull_failed(KEY)
    assert known.counts() == (1, 0)
    known.record_pull_failed(KEY)
    assert known.counts() == (0, 0)


async def test_a_broken_record_means_verify_again(tmp_path: Path) -> None:
    known = pull_manager(tmp_path)
    pulled(known, by=None)
    (file,) = (tmp_path / "image_manager" / "pulled").iterdir()
    file.write_text("{")
    assert await must_attempt_pull(known) is MustPullResult.ERROR
    pulled(known, by=None)
    assert await must_attempt_pull(known) is MustPullResult.RECORD_FOUND


async def test_records_of_images_that_are_gone_are_forgotten(tmp_path: Path) -> None:
    clock = VirtualClock()
    known = ImagePullManager(PullRecordFiles(tmp_path), CredentialVerification(), clock)
    pulled(known, by=None)
    pulled(known, by=None, key=PullKey(KEY.image, "process"))
    known.prune_unknown_records([], clock.now())
    assert known.counts() == (0, 2), "they are not older than the list"
    await clock.advance(1)
    known.prune_unknown_records([ImageKey(REF, "process")], clock.now())
    assert known.counts() == (0, 1)


def test_the_default_handlers_files_are_the_kubelets(tmp_path: Path) -> None:
    pulled(pull_manager(tmp_path), by=credential("x"), key=PullKey("quay.io/app:1"))
    (file,) = (tmp_path / "image_manager" / "pulled").iterdir()
    record = json.loads(file.read_text())
    assert record["kind"] == "ImagePulledRecord"
    assert record["apiVersion"] == "kubelet.config.k8s.io/v1beta1"
    assert record["imageRef"] == REF
    assert "runtimeHandler" not in record
    assert set(record["credentialMapping"]) == {"quay.io/app"}
    assert file.stat().st_mode & 0o777 == 0o600
    assert "x" not in record["credentialMapping"]["quay.io/app"]["kubernetesSecrets"][0]["uid"]


SECRETS = st.builds(
    credential, st.sampled_from("abc"), st.sampled_from(["p", "q"]), st.sampled_from(["n", "m"])
)


@given(st.lists(SECRETS, max_size=6), SECRETS)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
async def test_only_who_shares_a_secret_or_its_content_may_use_the_image(
    tmp_path_factory: pytest.TempPathFactory, pullers: list[Credential], user: Credential
) -> None:
    known = pull_manager(tmp_path_factory.mktemp("records"))
    for puller in pullers:
        pulled(known, by=puller)
    recorded = {puller.source: puller.hash for puller in pullers}
    may = user.source in recorded or user.hash in recorded.values()
    found = await must_attempt_pull(known, user)
    assert (found is MustPullResult.RECORD_FOUND) is (may and bool(pullers))


@given(st.lists(SECRETS, max_size=5), st.lists(SECRETS, max_size=5))
def test_merging_credentials_forgets_no_secret(
    one: list[Credential], other: list[Credential]
) -> None:
    merged = ImagePullCredentials()
    for each in one + other:
        merged = merged.merged(ImagePullCredentials.of(each))
    latest = {each.source: each.hash for each in one + other}
    assert {s.coordinates: s.credential_hash for s in merged.kubernetes_secrets} == {
        (source.namespace, source.name, source.uid): fingerprint
        for source, fingerprint in latest.items()
        if source
    }
