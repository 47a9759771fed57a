"""The image pull manager: records of pulled images, and which pods may use them.

An image that was pulled with a secret may not be used by a pod without it: such a pod has to pull,
and so to authenticate to the registry. Which images are verified is the operator's policy:

* `NeverVerify`: none.
* `NeverVerifyPreloadedImages` (the default): those that the manager itself pulled.
* `NeverVerifyAllowlistedImages`: all but those on a list of names and `prefix/*` patterns.
* `AlwaysVerify`: all.

Every pull has an intent on disk (`record_pull_intent`) until it has ended (`record_image_pulled` or
`record_pull_failed`). An intent that is found at start-up was interrupted: if its image is on the
node, it becomes a record without credentials, so that the next pod has to verify.

An intent is for the requested handler; a record is for the image as the runtime lists it. A runtime
that does not support handlers lists one image for all of them; they share its record, so that a
pod cannot avoid verification by naming another runtime class.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from bayplan.base.clock import Clock
from bayplan.images.credentials.keyring import Credential, SecretSource, ServiceAccountSource
from bayplan.images.credentials.records import (
    ImagePullCredentials,
    ImagePulledRecord,
    ImagePullSecret,
    ImagePullServiceAccount,
    PullKey,
    PullRecordFiles,
    UnreadableRecordError,
)
from bayplan.images.runtime.objects import Image, ImageKey
from bayplan.kube.imagereferences import (
    InvalidReferenceError,
    parse_image,
    with_default_tag,
    without_tag_or_digest,
)

_WILDCARD = "/*"


class VerificationPolicy(StrEnum):
    """Which images are verified."""

    NEVER = "NeverVerify"
    NEVER_PRELOADED = "NeverVerifyPreloadedImages"
    NEVER_ALLOWLISTED = "NeverVerifyAllowlistedImages"
    ALWAYS = "AlwaysVerify"


class MustPullResult(StrEnum):
    """The result of a credential check, by the kubelet's names."""

    POLICY_ALLOWED = "credentialPolicyAllowed"
    RECORD_FOUND = "credentialRecordFound"
    MUST_AUTHENTICATE = "mustAuthenticate"
    ERROR = "error"

    @property
    def must_pull(self) -> bool:
        """Whether the pod has to pull the image."""
        return self in {MustPullResult.MUST_AUTHENTICATE, MustPullResult.ERROR}


@dataclass(frozen=True, slots=True)
class CredentialVerification:
    """The verification policy, with the names that are never verified."""

    policy: VerificationPolicy = VerificationPolicy.NEVER_PRELOADED
    allowlist: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for pattern in self.allowlist:
            _check_pattern(pattern)

    def required(self, image: str, *, pulled_by_us: bool) -> bool:
        """Whether this image's credentials must be verified."""
        match self.policy:
            case VerificationPolicy.NEVER:
                return False
            case VerificationPolicy.NEVER_PRELOADED:
                return pulled_by_us
            case VerificationPolicy.NEVER_ALLOWLISTED:
                return not self._allows(image)
            case VerificationPolicy.ALWAYS:
                return True

    def _allows(self, image: str) -> bool:
        name = without_tag_or_digest(image)
        return any(
            name.startswith(pattern[:-1]) if pattern.endswith(_WILDCARD) else name == pattern
            for pattern in self.allowlist
        )


def matching_secret(
    recorded: ImagePullCredentials, credentials: Sequence[Credential]
) -> ImagePullSecret | None:
    """Return the pod's secret that is recorded: by the same content, or the same object.

    A rotated secret is still the same object, and a copy in another namespace has the same content;
    either is enough.
    """
    for credential in credentials:
        if not isinstance(credential.source, SecretSource):
            continue
        secret = ImagePullSecret.of(credential.source, credential.hash)
        if any(secret.is_same_or_equal(known) for known in recorded.kubernetes_secrets):
            return secret
    return None


def has_account(recorded: ImagePullCredentials, credentials: Sequence[Credential]) -> bool:
    """Whether the pod's service account is recorded."""
    accounts = (one.source for one in credentials)
    return any(
        isinstance(source, ServiceAccountSource)
        and ImagePullServiceAccount.of(source) in recorded.kubernetes_service_accounts
        for source in accounts
    )


def _check_pattern(pattern: str) -> None:
    name = pattern.removesuffix(_WILDCARD)
    if pattern != pattern.strip() or not name or "*" in name:
        raise ValueError(
            f"{pattern!r}: an image that is never verified is a name, or a prefix ending in '/*'"
        )
    if pattern.endswith(_WILDCARD):
        return
    try:
        bare = without_tag_or_digest(pattern)
    except InvalidReferenceError as error:
        raise ValueError(f"an image that is never verified: {error}") from error
    if bare != pattern:
        raise ValueError(f"{pattern!r}: neither tag nor digest may be given here")


log = logging.getLogger(__name__)

CredentialSource = Callable[[], Awaitable[Sequence[Credential]]]
"""Returns a pod's credentials for an image, when they are needed."""

MAX_RECORDED_SECRETS = 100
"""Above this many secrets a match by content is no longer recorded, to bound the records."""


class ImagePullManager:
    """Decides whether a pod must pull an image that is present; keeps the records of pulls."""

    def __init__(
        self, files: PullRecordFiles, verification: CredentialVerification, clock: Clock
    ) -> None:
        self._files = files
        self._verification = verification
        self._clock = clock
        self._under_way: Counter[PullKey] = Counter()

    def record_pull_intent(self, key: PullKey) -> None:
        """Record the intent to pull; one of the two methods below must follow."""
        self._files.write_intent(key)
        self._under_way[key] += 1

    def record_image_pulled(
        self, key: PullKey, image: ImageKey, credential: Credential | None
    ) -> None:
        """Record a successful pull and its credential.

        If that cannot be written, the intent stays: the image then still counts as pulled by us,
        and the next pod has to verify.
        """
        credentials = ImagePullCredentials.of(credential)
        try:
            self._record(key.image, image, credentials)
        except OSError:
            log.exception("cannot record image pull", extra={"image": str(key)})
        else:
            self._end(key)

    def record_pull_failed(self, key: PullKey) -> None:
        """Record a failed pull."""
        self._end(key)

    async def must_attempt_pull(
        self, key: PullKey, image: ImageKey, credentials: CredentialSource
    ) -> MustPullResult:
        """Return whether a pod must pull an image that is present; reads credentials if needed."""
        try:
            record = self._files.pulled(image)
            pulled_by_us = record is not None or self._has_intent(key)
        except UnreadableRecordError as error:
            log.warning("unreadable pull record, the image has to be pulled again: %s", error)
            return MustPullResult.ERROR
        if not self._verification.required(key.image, pulled_by_us=pulled_by_us):
            return MustPullResult.POLICY_ALLOWED
        return await self._check(key.image, image, record, credentials)

    def prune_unknown_records(self, present: Iterable[ImageKey], listed_at: datetime) -> int:
        """Delete the records of absent images that are older than the list; return their number.

        A record has the requested handler if the runtime did not report how it lists the image;
        then its id without a handler keeps it.
        """
        kept = set(present)
        gone = [
            record.key
            for record in self._files.pulled_records()
            if kept.isdisjoint({record.key, ImageKey(record.image_ref)})
            and record.last_updated_time < listed_at
        ]
        for key in gone:
            self._files.delete_pulled(key)
        return len(gone)

    def recover(self, images: Iterable[Image]) -> None:
        """Turn the intents whose image is present into records, at start-up."""
        intents = {intent.key for intent in self._files.intents()}
        for image in images:
            for key in [key for key in intents if _is_of(key, image)]:
                self._record(key.image, image.key, None)
                self._files.delete_intent(key)

    def counts(self) -> tuple[int, int]:
        """Return the numbers of intents and pulled records on disk."""
        return self._files.counts()

    async def _check(
        self,
        image: str,
        image_key: ImageKey,
        record: ImagePulledRecord | None,
        credentials: CredentialSource,
    ) -> MustPullResult:
        name = without_tag_or_digest(image)
        recorded = record.credential_mapping.get(name) if record else None
        if recorded is None:
            return MustPullResult.MUST_AUTHENTICATE
        if recorded.node_pods_accessible:
            return MustPullResult.RECORD_FOUND
        presented = await credentials()
        secret = matching_secret(recorded, presented)
        if secret is None:
            known = has_account(recorded, presented)
            return MustPullResult.RECORD_FOUND if known else MustPullResult.MUST_AUTHENTICATE
        if len(recorded.kubernetes_secrets) < MAX_RECORDED_SECRETS:
            self._record(image, image_key, ImagePullCredentials(kubernetes_secrets=(secret,)))
        return MustPullResult.RECORD_FOUND

    def _record(self, image: str, key: ImageKey, credentials: ImagePullCredentials | None) -> None:
        now = self._clock.now()
        try:
            record = self._files.pulled(key)
        except UnreadableRecordError as error:
            log.warning("replacing a pull record: %s", error)
            record = None
        known = record or ImagePulledRecord.of(key, now)
        updated = known.with_credentials(without_tag_or_digest(image), credentials, now)
        if updated is not record:
            self._files.write_pulled(updated)

    def _has_intent(self, key: PullKey) -> bool:
        """Whether a pull was begun for any handler: it is unknown yet how its image is listed."""
        under_way = any(other.image == key.image for other in self._under_way)
        return under_way or self._files.has_intent(key)

    def _end(self, key: PullKey) -> None:
        self._under_way[key] -= 1
        if self._under_way[key] <= 0:
            del self._under_way[key]
            self._files.delete_intent(key)


def _is_of(key: PullKey, image: Image) -> bool:
    """Whether an intent's name is one of the image's; runtimes list names in canonical form.

    An image without a handler may be that of any handler, and counts as such.
    """
    if image.handler and key.handler != image.handler:
        return False
    return key.image in image.names or str(parse_image(with_default_tag(key.image))) in image.names
