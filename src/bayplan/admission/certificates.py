"""The webhook's certificate and its authority: renewal, and the Secret or files they come from.

Everything is renewed when a third of its life is left. API servers must trust an authority before
they meet what it has signed, and replicas do not act at the same moment, so an authority is
followed up in two steps: first the new one comes, trusted beside the old one, and the old one signs
a last time; when that certificate's turn comes, the new one signs the next. Until it ends the old
authority stays trusted.

Replicas of the webhook share one Secret. Whichever finds that something is due writes it, on the
version that it has read; who comes second is refused by the API server, reads again, and uses what
the first has written. Files are renewed by others (such as cert-manager): they are read again
whenever they change, and the authority behind them is not ours to install.
"""

from __future__ import annotations

import base64
import binascii
import logging
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import lru_cache
from pathlib import Path
from typing import Protocol

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import serialization

from bayplan.client import Client, Untyped, merge, untyped_kind
from bayplan.client.errors import ConflictError, NotFoundError
from bayplan.client.serving.certificates import CertificateAuthority, KeyPair

_NAME = "bayplan-webhook"


@dataclass(frozen=True, slots=True)
class Lives:
    """How long certificates are good for."""

    serving: timedelta = timedelta(days=90)
    authority: timedelta = timedelta(days=730)


LIVES = Lives()


@dataclass(frozen=True, slots=True)
class Bundle:
    """All that replicas share; PEM."""

    authority: KeyPair
    """The authority that signs the next certificate."""
    trusted: bytes
    """The certificates of all authorities that API servers are to trust."""
    serving: KeyPair = field(repr=False)
    """The certificate that the webhook serves."""


class BundleError(ValueError):
    """Certificates that cannot be used; the text has the reason, and no key."""


def renewed(kept: Bundle | None, names: Collection[str], now: datetime, lives: Lives) -> Bundle:
    """What is to be used from now on; the bundle itself if nothing has to change."""
    if kept is None or not _is_valid(_certificate(kept.authority), now):
        return _fresh(names, now, lives)
    bundle = kept
    if _is_due(_certificate(kept.authority), now):
        bundle = _followed_up(kept, names, now, lives)
    elif _is_due(_certificate(kept.serving), now) or not _covers(kept.serving, names):
        serving = _signed(kept.authority, names, now, lives)
        bundle = replace(kept, serving=serving)
    return _without_ended(bundle, now)


def checked(bundle: Bundle) -> Bundle:
    """The bundle, if its parts belong together; BundleError if they do not."""
    try:
        for pair in (bundle.authority, bundle.serving):
            _check_key(pair)
        leaf, roots = _certificate(bundle.serving), _certificates(bundle.trusted)
    except (ValueError, TypeError) as error:
        raise BundleError(f"not certificates and keys as PEM: {type(error).__name__}") from None
    if not any(_has_signed(root, leaf) for root in roots):
        raise BundleError("the serving certificate is of no authority that is trusted")
    return bundle


def end_of(pair: KeyPair) -> datetime:
    """When a certificate ends."""
    return _certificate(pair).not_valid_after_utc


def _fresh(names: Collection[str], now: datetime, lives: Lives) -> Bundle:
    authority = CertificateAuthority.create(now, lives.authority, f"{_NAME}-ca").pair
    return Bundle(authority, authority.certificate, _signed(authority, names, now, lives))


def _followed_up(kept: Bundle, names: Collection[str], now: datetime, lives: Lives) -> Bundle:
    authority = CertificateAuthority.create(now, lives.authority, f"{_NAME}-ca").pair
    serving = _signed(kept.authority, names, now, lives)
    return Bundle(authority, authority.certificate + kept.trusted, serving)


def _signed(authority: KeyPair, names: Collection[str], now: datetime, lives: Lives) -> KeyPair:
    """A certificate that ends with its authority at the latest."""
    valid = min(lives.serving, end_of(authority) - now)
    return CertificateAuthority(authority).server_pair(sorted(names), now, valid, _NAME)


def _without_ended(bundle: Bundle, now: datetime) -> Bundle:
    roots = _certificates(bundle.trusted)
    living = [root for root in roots if _is_valid(root, now)]
    if len(living) == len(roots):
        return bundle
    trusted = b"".join(root.public_bytes(serialization.Encoding.PEM) for root in living)
    return replace(bundle, trusted=trusted)


def _is_valid(certificate: x509.Certificate, now: datetime) -> bool:
    return certificate.not_valid_before_utc <= now < certificate.not_valid_after_utc


def _is_due(certificate: x509.Certificate, now: datetime) -> bool:
    end = certificate.not_valid_after_utc
    return now >= end - (end - certificate.not_valid_before_utc) / 3


def _covers(pair: KeyPair, names: Collection[str]) -> bool:
    found = _certificate(pair).extensions.get_extension_for_class(x509.SubjectAlternativeName)
    return {str(one.value) for one in found.value} >= set(names)


def _check_key(pair: KeyPair) -> None:
    key = serialization.load_pem_private_key(pair.key, None)
    if key.public_key() != _certificate(pair).public_key():
        raise BundleError("a key is not that of its certificate")


def _has_signed(root: x509.Certificate, leaf: x509.Certificate) -> bool:
    try:
        leaf.verify_directly_issued_by(root)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True


def _certificate(pair: KeyPair) -> x509.Certificate:
    return _read_one(pair.certificate)


@lru_cache(maxsize=8)
def _read_one(pem: bytes) -> x509.Certificate:
    """The same few are looked at again and again, to see whether they are due."""
    return x509.load_pem_x509_certificate(pem)


@lru_cache(maxsize=8)
def _certificates(pem: bytes) -> tuple[x509.Certificate, ...]:
    return tuple(x509.load_pem_x509_certificates(pem))


log = logging.getLogger(__name__)
SECRETS = untyped_kind("Secret")
_TRIES = 10
_MOST_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Proof:
    """What the webhook shows, and the authorities by which API servers are to know it."""

    pair: KeyPair
    trusted: bytes = b""
    """Empty if who is trusted is not ours to say."""


class CertificateSource(Protocol):
    """Where a certificate comes from."""

    async def current(self, client: Client) -> Proof:
        """The certificate to show now; BundleError, OSError or ClientError if there is none."""
        ...


@dataclass(frozen=True, slots=True)
class CertificateFiles:
    """A certificate and its key in files."""

    certificate: Path
    key: Path

    async def current(self, client: Client) -> Proof:
        """What the files have now."""
        del client
        return Proof(KeyPair(_read(self.certificate), _read(self.key)))


def _read(path: Path) -> bytes:
    with path.open("rb") as file:
        content = file.read(_MOST_BYTES + 1)
    if len(content) > _MOST_BYTES:
        raise BundleError(f"{path}: larger than a certificate can be")
    return content


@dataclass(slots=True)
class SharedSecret:
    """A certificate of our own making, in a Secret that all replicas read."""

    namespace: str
    name: str
    names: Collection[str]
    """By which API servers call the webhook."""
    lives: Lives = LIVES
    _checked: Bundle | None = field(default=None, init=False, repr=False)
    """What was last found good: the same, read again, is not checked again."""

    async def current(self, client: Client) -> Proof:
        """What the Secret has, renewed if that was due."""
        for _ in range(_TRIES):
            try:
                bundle = await self._agreed(client)
            except ConflictError:  # another replica was faster: see what it wrote
                continue
            return Proof(bundle.serving, bundle.trusted)
        raise BundleError(f"Secret {self.namespace}/{self.name} changes too often to be read")

    async def _agreed(self, client: Client) -> Bundle:
        now = client.clock.now()
        try:
            found = await client.get(SECRETS, self.namespace, self.name)
        except NotFoundError:
            bundle = renewed(None, self.names, now, self.lives)
            await self._create(client, bundle)
            return bundle
        kept = self._kept(found)
        bundle = renewed(kept, self.names, now, self.lives)
        if bundle is not kept:
            await self._replace(client, found, bundle)
        return bundle

    async def _create(self, client: Client, bundle: Bundle) -> None:
        meta = {"namespace": self.namespace, "name": self.name}
        made: Untyped = {"metadata": meta, "type": "kubernetes.io/tls", "data": _encoded(bundle)}
        await client.create(made, SECRETS)
        log.info("made certificates, in Secret %s/%s", self.namespace, self.name)

    async def _replace(self, client: Client, found: Untyped, bundle: Bundle) -> None:
        meta = found.get("metadata")
        version = meta.get("resourceVersion") if isinstance(meta, dict) else None
        change = merge({"metadata": {"resourceVersion": version}, "data": _encoded(bundle)})
        await client.patch(SECRETS, self.namespace, self.name, change=change)
        log.info("renewed certificates, in Secret %s/%s", self.namespace, self.name)

    def _kept(self, found: Untyped) -> Bundle | None:
        """What the Secret has; None if that cannot be used."""
        try:
            bundle = _decoded(found)
            if bundle != self._checked:
                self._checked = checked(bundle)
        except BundleError as error:
            log.warning("Secret %s/%s is replaced: %s", self.namespace, self.name, error)
            return None
        return self._checked


def _encoded(bundle: Bundle) -> dict[str, str]:
    parts = {
        "ca.crt": bundle.trusted,
        "ca-next.crt": bundle.authority.certificate,
        "ca.key": bundle.authority.key,
        "tls.crt": bundle.serving.certificate,
        "tls.key": bundle.serving.key,
    }
    return {name: base64.b64encode(part).decode() for name, part in parts.items()}


def _decoded(found: Untyped) -> Bundle:
    data = found.get("data")
    parts = data if isinstance(data, dict) else {}

    def part(name: str) -> bytes:
        try:
            return base64.b64decode(parts[name], validate=True)
        except (KeyError, TypeError, binascii.Error):
            raise BundleError(f"it has no {name} that can be read") from None

    authority = KeyPair(part("ca-next.crt"), part("ca.key"))
    return Bundle(authority, part("ca.crt"), KeyPair(part("tls.crt"), part("tls.key")))
