"""What is remembered of pulls, one small file each: intents, and who may use what was pulled.

The form on disk is the kubelet's own (`kubelet.config.k8s.io/v1beta1`), with one field more: the
runtime handler, left out for the default one. A record is about one (image ref, handler): that a
secret opened the image of one handler says nothing about another's.

    image_manager/pulling/sha256-<hash of image, or of image,handler>
    image_manager/pulled/sha256-<hash of image ref, or of ref,handler>

The layout and the default handler's file names are the kubelet's. A file that cannot be read is
reported and treated as "there is a record, but it vouches for nobody".
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


log = logging.getLogger(__name__)

_PREFIX = "sha256-"
_UNFINISHED = ".tmp"
_Record = TypeVar("_Record", ImagePullIntent, ImagePulledRecord)


class UnreadableRecordError(Exception):
    """A record is there, but it cannot be understood."""


class RecordFiles:
    """The pull records of one node."""

    def __init__(self, state_dir: Path) -> None:
        self._pulling = state_dir / "image_manager" / "pulling"
        self._pulled = state_dir / "image_manager" / "pulled"
        for folder in (self._pulling, self._pulled):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def intents(self) -> list[ImagePullIntent]:
        """Every readable intent."""
        return list(_read_all(self._pulling, ImagePullIntent))

    def has_intent(self, key: PullKey) -> bool:
        """Whether a pull of this image had begun."""
        intent = _read(self._pulling / _file_name(key), ImagePullIntent)
        return intent is not None and intent.key == key

    def write_intent(self, key: PullKey) -> None:
        """Note that a pull begins."""
        _write(self._pulling / _file_name(key), ImagePullIntent.of(key))

    def delete_intent(self, key: PullKey) -> None:
        """Note that the pull has ended."""
        (self._pulling / _file_name(key)).unlink(missing_ok=True)

    def pulled_records(self) -> list[ImagePulledRecord]:
        """Every readable pulled record."""
        return list(_read_all(self._pulled, ImagePulledRecord))

    def pulled(self, key: ImageKey) -> ImagePulledRecord | None:
        """The record of an image, or None if there is none."""
        record = _read(self._pulled / _file_name(key), ImagePulledRecord)
        return record if record is not None and record.key == key else None

    def write_pulled(self, record: ImagePulledRecord) -> None:
        """Keep a record, in the place of the image's earlier one."""
        _write(self._pulled / _file_name(record.key), record)

    def delete_pulled(self, key: ImageKey) -> None:
        """Forget an image."""
        (self._pulled / _file_name(key)).unlink(missing_ok=True)

    def counts(self) -> tuple[int, int]:
        """How many intents and how many pulled records there are."""
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
            log.warning("passing over a pull record: %s", error)
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
    """Write beside, sync, rename: after a crash there is the old file or the new one."""
    unfinished = path.with_name(path.name + _UNFINISHED)
    descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(msgspec.json.encode(record))
        file.flush()
        os.fsync(file.fileno())
    unfinished.replace(path)
