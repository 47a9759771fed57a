"""What is remembered of pulls: intents (a pull has begun) and pulled records (who may use it).

The form on disk is the kubelet's own (`kubelet.config.k8s.io/v1beta1`), with one field more: the
runtime handler, left out for the default one. A record is about one (image ref, handler): that a
secret opened the image of one handler says nothing about another's.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import msgspec

from bayplan.images.credentials.keyring import (
    Credential,
    SecretSource,
    ServiceAccountSource,
)
from bayplan.images.runtime.objects import ImageKey

API_VERSION = "kubelet.config.k8s.io/v1beta1"


@dataclass(frozen=True, slots=True)
class PullKey:
    """What is being pulled: the name as the pod wrote it, for a handler."""

    image: str
    handler: str = ""

    def __str__(self) -> str:
        return f"{self.image},{self.handler}" if self.handler else self.image


class _Part(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A part of a record: camelCase, absent where it says nothing."""


class ImagePullIntent(_Part, frozen=True, tag_field="kind", tag="ImagePullIntent"):
    """A pull of this image has begun and is not known to have ended."""

    api_version: str
    image: str
    runtime_handler: str = ""

    @classmethod
    def of(cls, key: PullKey) -> ImagePullIntent:
        """The intent to pull."""
        return cls(api_version=API_VERSION, image=key.image, runtime_handler=key.handler)

    @property
    def key(self) -> PullKey:
        """What was being pulled."""
        return PullKey(self.image, self.runtime_handler)


class ImagePullSecret(_Part, frozen=True):
    """A secret that opened an image, and the fingerprint of what was in it."""

    uid: str
    namespace: str
    name: str
    credential_hash: str

    @classmethod
    def of(cls, source: SecretSource, credential_hash: str) -> ImagePullSecret:
        """The record of a credential."""
        return cls(
            uid=source.uid,
            namespace=source.namespace,
            name=source.name,
            credential_hash=credential_hash,
        )

    @property
    def coordinates(self) -> tuple[str, str, str]:
        """Which secret it is, whatever is in it."""
        return self.namespace, self.name, self.uid

    def is_same_or_equal(self, other: ImagePullSecret) -> bool:
        """Whether it is the same secret, or has the same content."""
        same_content = bool(other.credential_hash) and self.credential_hash == other.credential_hash
        return same_content or self.coordinates == other.coordinates


class ImagePullServiceAccount(_Part, frozen=True, order=True):
    """A service account on whose behalf a plugin gave the credentials that opened an image."""

    uid: str
    namespace: str
    name: str

    @classmethod
    def of(cls, source: ServiceAccountSource) -> ImagePullServiceAccount:
        """The record of a service account."""
        return cls(uid=source.uid, namespace=source.namespace, name=source.name)


class ImagePullCredentials(_Part, frozen=True):
    """Who may use an image: every pod of the node, or those with one of these."""

    kubernetes_secrets: tuple[ImagePullSecret, ...] = ()
    kubernetes_service_accounts: tuple[ImagePullServiceAccount, ...] = ()
    node_pods_accessible: bool = False

    @classmethod
    def of(cls, credential: Credential | None) -> ImagePullCredentials:
        """What a successful pull with this credential (or with none) proves."""
        if credential is None or credential.source is None:
            return cls(node_pods_accessible=True)
        if isinstance(credential.source, ServiceAccountSource):
            account = ImagePullServiceAccount.of(credential.source)
            return cls(kubernetes_service_accounts=(account,))
        return cls(kubernetes_secrets=(ImagePullSecret.of(credential.source, credential.hash),))

    def merged(self, other: ImagePullCredentials) -> ImagePullCredentials:
        """Both together: what is open to all needs no secrets; a newer hash replaces an older."""
        if self.node_pods_accessible or other.node_pods_accessible:
            return ImagePullCredentials(node_pods_accessible=True)
        by_coordinates = {
            secret.coordinates: secret
            for secret in self.kubernetes_secrets + other.kubernetes_secrets
        }
        accounts = {*self.kubernetes_service_accounts, *other.kubernetes_service_accounts}
        return ImagePullCredentials(
            kubernetes_secrets=tuple(by_coordinates[key] for key in sorted(by_coordinates)),
            kubernetes_service_accounts=tuple(sorted(accounts)),
        )


class ImagePulledRecord(_Part, frozen=True, tag_field="kind", tag="ImagePulledRecord"):
    """An image that was pulled, with who may use it, by the name it was asked for."""

    api_version: str
    last_updated_time: datetime
    image_ref: str
    runtime_handler: str = ""
    credential_mapping: dict[str, ImagePullCredentials] = {}

    @classmethod
    def of(cls, key: ImageKey, now: datetime) -> ImagePulledRecord:
        """A record that vouches for nobody yet: whoever wants the image has to verify."""
        return cls(
            api_version=API_VERSION,
            last_updated_time=now,
            image_ref=key.id,
            runtime_handler=key.handler,
        )

    @property
    def key(self) -> ImageKey:
        """Which image of which handler the record is about."""
        return ImageKey(self.image_ref, self.runtime_handler)

    def with_credentials(
        self, name: str, credentials: ImagePullCredentials | None, now: datetime
    ) -> ImagePulledRecord:
        """The record with more credentials; the very same record if it already says so."""
        if credentials is None:
            return self
        known = self.credential_mapping.get(name)
        merged = credentials if known is None else known.merged(credentials)
        if merged == known:
            return self
        mapping = {**self.credential_mapping, name: merged}
        return msgspec.structs.replace(self, credential_mapping=mapping, last_updated_time=now)
