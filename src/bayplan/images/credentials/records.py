"""Records of pulls, one small file each: intents, and the credentials that may use an image.

The format is the kubelet's (`kubelet.config.k8s.io/v1beta1`), with one more field: the runtime
handler, left out for the default one. A record is about one (image ref, handler): a secret that was
accepted for one handler's image is not recorded for another's.

    image_manager/pulling/sha256-<hash of image, or of image,handler>
    image_manager/pulled/sha256-<hash of image ref, or of ref,handler>

The layout and the default handler's file names are the kubelet's. A file that cannot be read is
reported and treated as a record without credentials.
"""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TypeVar

import msgspec

from bayplan.images.credentials.keyring import Credential, SecretSource, ServiceAccountSource
from bayplan.images.runtime.objects import ImageKey

API_VERSION = "kubelet.config.k8s.io/v1beta1"


@dataclass(frozen=True, slots=True)
class PullKey:
    """A pull: the image name in the pod's spec, and the handler."""

    image: str
    handler: str = ""

    def __str__(self) -> str:
        return f"{self.image},{self.handler}" if self.handler else self.image


class _Part(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A part of a record: camelCase, empty fields left out."""


class ImagePullIntent(_Part, frozen=True, tag_field="kind", tag="ImagePullIntent"):
    """A pull of this image has begun and is not known to have ended."""

    api_version: str
    image: str
    runtime_handler: str = ""

    @classmethod
    def of(cls, key: PullKey) -> ImagePullIntent:
        """Return the intent of a pull."""
        return cls(api_version=API_VERSION, image=key.image, runtime_handler=key.handler)

    @property
    def key(self) -> PullKey:
        """The pull of the intent."""
        return PullKey(self.image, self.runtime_handler)


class ImagePullSecret(_Part, frozen=True):
    """A secret that was accepted for an image, and the hash of its content."""

    uid: str
    namespace: str
    name: str
    credential_hash: str

    @classmethod
    def of(cls, source: SecretSource, credential_hash: str) -> ImagePullSecret:
        """Return the record of a credential."""
        return cls(
            uid=source.uid,
            namespace=source.namespace,
            name=source.name,
            credential_hash=credential_hash,
        )

    @property
    def coordinates(self) -> tuple[str, str, str]:
        """The identity of the secret, without its content."""
        return self.namespace, self.name, self.uid

    def is_same_or_equal(self, other: ImagePullSecret) -> bool:
        """Whether it is the same secret, or has the same content."""
        same_content = bool(other.credential_hash) and self.credential_hash == other.credential_hash
        return same_content or self.coordinates == other.coordinates


class ImagePullServiceAccount(_Part, frozen=True, order=True):
    """A service account whose credentials of a plugin were accepted for an image."""

    uid: str
    namespace: str
    name: str

    @classmethod
    def of(cls, source: ServiceAccountSource) -> ImagePullServiceAccount:
        """Return the record of a service account."""
        return cls(uid=source.uid, namespace=source.namespace, name=source.name)


class ImagePullCredentials(_Part, frozen=True):
    """The credentials that may use an image: those of every pod of the node, or these."""

    kubernetes_secrets: tuple[ImagePullSecret, ...] = ()
    kubernetes_service_accounts: tuple[ImagePullServiceAccount, ...] = ()
    node_pods_accessible: bool = False

    @classmethod
    def of(cls, credential: Credential | None) -> ImagePullCredentials:
        """Return what a successful pull with this credential (or without one) shows."""
        if credential is None or credential.source is None:
            return cls(node_pods_accessible=True)
        if isinstance(credential.source, ServiceAccountSource):
            account = ImagePullServiceAccount.of(credential.source)
            return cls(kubernetes_service_accounts=(account,))
        return cls(kubernetes_secrets=(ImagePullSecret.of(credential.source, credential.hash),))

    def merged(self, other: ImagePullCredentials) -> ImagePullCredentials:
        """Return the union; accessible to all needs no secrets; a newer hash replaces an older."""
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
    """A pulled image, with the credentials that may use it by requested name."""

    api_version: str
    last_updated_time: datetime
    image_ref: str
    runtime_handler: str = ""
    credential_mapping: dict[str, ImagePullCredentials] = {}

    @classmethod
    def of(cls, key: ImageKey, now: datetime) -> ImagePulledRecord:
        """Return a record without credentials: every pod has to verify."""
        return cls(
            api_version=API_VERSION,
            last_updated_time=now,
            image_ref=key.id,
            runtime_handler=key.handler,
        )

    @property
    def key(self) -> ImageKey:
        """The image and handler of the record."""
        return ImageKey(self.image_ref, self.runtime_handler)

    def with_credentials(
        self, name: str, credentials: ImagePullCredentials | None, now: datetime
    ) -> ImagePulledRecord:
        """Return the record with more credentials; the same object if nothing changes."""
        if credentials is None:
            return self
        known = self.credential_mapping.get(name)
        merged = credentials if known is None else known.merged(credentials)
        if merged == known:
            return self
        mapping = {**self.credential_mapping, name: merged}
        return msgspec.structs.replace(self, credential_mapping=mapping, last_updated_time=now)


log = logging.getLogger(__name__)

_PREFIX = "sha256-"
_UNFINISHED = ".tmp"
_Record = TypeVar("_Record", ImagePullIntent, ImagePulledRecord)


class UnreadableRecordError(Exception):
    """A record exists, but it cannot be read."""


class PullRecordFiles:
    """The pull records of one node."""

    def __init__(self, state_dir: Path) -> None:
        self._pulling = state_dir / "image_manager" / "pulling"
        self._pulled = state_dir / "image_manager" / "pulled"
        for folder in (self._pulling, self._pulled):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def intents(self) -> list[ImagePullIntent]:
        """Return every readable intent."""
        return list(_read_all(self._pulling, ImagePullIntent))

    def has_intent(self, key: PullKey) -> bool:
        """Whether there is an intent of this pull."""
        intent = _read(self._pulling / _file_name(key), ImagePullIntent)
        return intent is not None and intent.key == key

    def write_intent(self, key: PullKey) -> None:
        """Write the intent of a pull."""
        _write(self._pulling / _file_name(key), ImagePullIntent.of(key))

    def delete_intent(self, key: PullKey) -> None:
        """Delete the intent of a pull."""
        (self._pulling / _file_name(key)).unlink(missing_ok=True)

    def pulled_records(self) -> list[ImagePulledRecord]:
        """Return every readable pulled record."""
        return list(_read_all(self._pulled, ImagePulledRecord))

    def pulled(self, key: ImageKey) -> ImagePulledRecord | None:
        """Return the record of an image; None if there is none."""
        record = _read(self._pulled / _file_name(key), ImagePulledRecord)
        return record if record is not None and record.key == key else None

    def write_pulled(self, record: ImagePulledRecord) -> None:
        """Write the record of an image."""
        _write(self._pulled / _file_name(record.key), record)

    def delete_pulled(self, key: ImageKey) -> None:
        """Delete the record of an image."""
        (self._pulled / _file_name(key)).unlink(missing_ok=True)

    def counts(self) -> tuple[int, int]:
        """Return the numbers of intents and of pulled records."""
        return sum(1 for _ in _files(self._pulling)), sum(1 for _ in _files(self._pulled))


def _file_name(key: PullKey | ImageKey) -> str:
    return _PREFIX + hashlib.sha256(str(key).encode()).hexdigest()


def _files(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.glob(f"{_PREFIX}*")):
        if path.is_file() and not path.name.endswith(_UNFINISHED):
            yield path


def _read_all(folder: Path, kind: type[_Record]) -> Iterator[_Record]:
    for path in _files(folder):
        try:
            record = _read(path, kind)
        except UnreadableRecordError as error:
            log.warning("skipping unreadable pull record: %s", error)
            continue
        if record is not None:
            yield record


def _read(path: Path, kind: type[_Record]) -> _Record | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UnreadableRecordError(f"{path}: {error}") from error


def _write(path: Path, record: ImagePullIntent | ImagePulledRecord) -> None:
    """Write a temporary file, sync and rename: after a crash there is the old file or the new."""
    unfinished = path.with_name(path.name + _UNFINISHED)
    descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(msgspec.json.encode(record))
        file.flush()
        os.fsync(file.fileno())
    unfinished.replace(path)
