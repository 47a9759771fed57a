"""The memory of pulls: what was pulled, by whom it may be used, and what was cut off half-way.

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
from datetime import datetime

from bayplan.base.clock import Clock
from bayplan.images.credentials.keyring import Credential
from bayplan.images.credentials.record_files import RecordFiles, UnreadableRecordError
from bayplan.images.credentials.records import ImagePullCredentials, ImagePulledRecord, PullKey
from bayplan.images.credentials.verification import (
    Verdict,
    Verification,
    has_account,
    matching_secret,
)
from bayplan.images.runtime.objects import Image, ImageKey
from bayplan.kube.imagereferences import parse_image, with_default_tag, without_tag_or_digest

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
