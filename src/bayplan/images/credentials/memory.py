"""The memory of pulls: what was pulled, who may use it, and what was cut off half-way.

An image that was pulled with a secret is not handed to a pod without it: such a pod has to pull,
and so to prove to the registry that it may. Which images are verified is the operator's policy:

* `NeverVerify`: none.
* `NeverVerifyPreloadedImages` (the default): those that the manager itself pulled.
* `NeverVerifyAllowlistedImages`: all but those on a list of names and `prefix/*` patterns.
* `AlwaysVerify`: all.

Everything here is a pure function of a record; `bayplan.images.credentials.memory` keeps them.

Every pull is announced (`begin`) before it starts and closed (`succeeded` or `failed`) after. An
announcement that is still there at start-up was cut off: if its image is on the node all the same,
it becomes a record that vouches for nobody, so that the next pod has to verify.

An announcement is for the handler that was asked for; a record is for the image as the runtime
lists it. A runtime that knows no handlers lists one image for all of them; they then share its
record, and nobody gets round a secret by naming another runtime class.
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
    RecordFiles,
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


class Verdict(StrEnum):
    """The outcome of a check, by the kubelet's names."""

    POLICY_ALLOWED = "credentialPolicyAllowed"
    RECORD_FOUND = "credentialRecordFound"
    MUST_AUTHENTICATE = "mustAuthenticate"
    ERROR = "error"

    @property
    def must_pull(self) -> bool:
        """Whether the pod has to go to the registry."""
        return self in {Verdict.MUST_AUTHENTICATE, Verdict.ERROR}


@dataclass(frozen=True, slots=True)
class Verification:
    """The operator's policy, with its list of names that are never verified."""

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
    """The pod's secret that the record vouches for: the same content, or the same secret.

    A secret whose content has changed since (a rotation) is still the same secret, and a copy of it
    in another namespace has the same content; either is enough.
    """
    for credential in credentials:
        if not isinstance(credential.source, SecretSource):
            continue
        secret = ImagePullSecret.of(credential.source, credential.hash)
        if any(secret.is_same_or_equal(known) for known in recorded.kubernetes_secrets):
            return secret
    return None


def has_account(recorded: ImagePullCredentials, credentials: Sequence[Credential]) -> bool:
    """Whether the pod's service account is one that the record vouches for."""
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
"""Gives a pod's credentials for an image, when they are needed."""

REMEMBERED_SECRETS = 100
"""Above this many secrets a mere match is no longer written down: namespaces come and go."""


class PullMemory:
    """Decides whether a pod must pull an image that is there, and remembers who pulled it."""

    def __init__(self, files: RecordFiles, verification: Verification, clock: Clock) -> None:
        self._files = files
        self._verification = verification
        self._clock = clock
        self._under_way: Counter[PullKey] = Counter()

    def begin(self, key: PullKey) -> None:
        """Announce a pull; exactly one `succeeded` or `failed` must follow."""
        self._files.write_intent(key)
        self._under_way[key] += 1

    def succeeded(self, key: PullKey, image: ImageKey, credential: Credential | None) -> None:
        """Close a pull that brought an image, remembering what opened it.

        If that cannot be written, the announcement stays: the image then still counts as pulled by
        us, and its next user has to verify.
        """
        credentials = ImagePullCredentials.of(credential)
        try:
            self._remember(key.image, image, credentials)
        except OSError:
            log.exception("cannot record the pull of %s", key)
        else:
            self._end(key)

    def failed(self, key: PullKey) -> None:
        """Close a pull that brought nothing."""
        self._end(key)

    async def verdict(
        self, key: PullKey, image: ImageKey, credentials: CredentialSource
    ) -> Verdict:
        """Whether a pod may use the image that is there; asks for credentials only if needed."""
        try:
            record = self._files.pulled(image)
            pulled_by_us = record is not None or self._was_announced(key)
        except UnreadableRecordError as error:
            log.warning("an image has to be pulled again to verify its use: %s", error)
            return Verdict.ERROR
        if not self._verification.required(key.image, pulled_by_us=pulled_by_us):
            return Verdict.POLICY_ALLOWED
        return await self._check(key.image, image, record, credentials)

    def forget_absent(self, present: Iterable[ImageKey], listed_at: datetime) -> int:
        """Drop the records of images that are gone, unless they are newer than the list.

        Returns how many those were. A record is by the handler that was asked for if the runtime
        would not say how it lists the image; then its id without a handler keeps it.
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
        """At start-up: turn the announcements whose image is there into records."""
        announced = {intent.key for intent in self._files.intents()}
        for image in images:
            for key in [key for key in announced if _is_of(key, image)]:
                self._remember(key.image, image.key, None)
                self._files.delete_intent(key)

    def counts(self) -> tuple[int, int]:
        """How many intents and pulled records are on disk."""
        return self._files.counts()

    async def _check(
        self,
        image: str,
        image_key: ImageKey,
        record: ImagePulledRecord | None,
        credentials: CredentialSource,
    ) -> Verdict:
        name = without_tag_or_digest(image)
        recorded = record.credential_mapping.get(name) if record else None
        if recorded is None:
            return Verdict.MUST_AUTHENTICATE
        if recorded.node_pods_accessible:
            return Verdict.RECORD_FOUND
        theirs = await credentials()
        secret = matching_secret(recorded, theirs)
        if secret is None:
            known = has_account(recorded, theirs)
            return Verdict.RECORD_FOUND if known else Verdict.MUST_AUTHENTICATE
        if len(recorded.kubernetes_secrets) < REMEMBERED_SECRETS:
            self._remember(image, image_key, ImagePullCredentials(kubernetes_secrets=(secret,)))
        return Verdict.RECORD_FOUND

    def _remember(
        self, image: str, key: ImageKey, credentials: ImagePullCredentials | None
    ) -> None:
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

    def _was_announced(self, key: PullKey) -> bool:
        """For any handler: until a pull has ended, nobody knows how its image will be listed."""
        under_way = any(other.image == key.image for other in self._under_way)
        return under_way or self._files.has_intent(key)

    def _end(self, key: PullKey) -> None:
        self._under_way[key] -= 1
        if self._under_way[key] <= 0:
            del self._under_way[key]
            self._files.delete_intent(key)


def _is_of(key: PullKey, image: Image) -> bool:
    """Whether an announced name is one of the image's; runtimes list names in normal form.

    An image without a handler may be the one of any: then it is, to be on the safe side.
    """
    if image.handler and key.handler != image.handler:
        return False
    return key.image in image.names or str(parse_image(with_default_tag(key.image))) in image.names
