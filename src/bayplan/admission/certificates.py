"""The webhook's certificate and its authority: renewal, and the Secret or files they come from.

A certificate is renewed when a third of its validity period is left. API servers must trust a CA
before they see a certificate of it, and replicas do not act at the same time. So a CA is rotated in
two steps: first the new CA is added to the bundle, and the old one signs a last certificate; when
that one is due, the new CA signs the next. The old CA stays in the bundle until it expires.

Replicas of the webhook share one Secret. The first that finds a certificate due writes the new one,
with the resource version that it has read; a second one gets a conflict, reads again, and uses the
first one's. Files are renewed by another program (such as cert-manager): they are read again, and
their CA is not written into the webhook configurations.
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
class CertificateLifetimes:
    """The validity periods of certificates."""

    serving: timedelta = timedelta(days=90)
    authority: timedelta = timedelta(days=730)


DEFAULT_LIFETIMES = CertificateLifetimes()


@dataclass(frozen=True, slots=True)
class CertificateBundle:
    """The CA and the serving certificate that all replicas share, as PEM."""

    authority: KeyPair
    """The CA that signs the next serving certificate."""
    trusted: bytes
    """The CA bundle that API servers trust."""
    serving: KeyPair = field(repr=False)
    """The serving certificate and its key."""


class BundleError(ValueError):
    """Certificates that cannot be used; the message has the reason, and no key."""


def renewed(
    kept: CertificateBundle | None,
    names: Collection[str],
    now: datetime,
    lifetimes: CertificateLifetimes,
) -> CertificateBundle:
    """Return the bundle with what is due renewed; the same object if nothing is."""
    if kept is None or not _is_valid(_certificate(kept.authority), now):
        return _fresh(names, now, lifetimes)
    bundle = kept
    if _is_due(_certificate(kept.authority), now):
        bundle = _followed_up(kept, names, now, lifetimes)
    elif _is_due(_certificate(kept.serving), now) or not _covers(kept.serving, names):
        serving = _signed(kept.authority, names, now, lifetimes)
        bundle = replace(kept, serving=serving)
    return _without_ended(bundle, now)


def checked(bundle: CertificateBundle) -> CertificateBundle:
    """Return the bundle; BundleError if its keys, certificates and CA do not match."""
    try:
        for pair in (bundle.authority, bundle.serving):
            _check_key(pair)
        leaf, roots = _certificate(bundle.serving), _certificates(bundle.trusted)
    except (ValueError, TypeError) as error:
        raise BundleError(
            f"certificates or keys are not valid PEM: {type(error).__name__}"
        ) from None
    if not any(_has_signed(root, leaf) for root in roots):
        raise BundleError("the serving certificate is not signed by a CA of ca.crt")
    return bundle


def end_of(pair: KeyPair) -> datetime:
    """Return when a certificate expires."""
    return _certificate(pair).not_valid_after_utc


def _fresh(
    names: Collection[str], now: datetime, lifetimes: CertificateLifetimes
) -> CertificateBundle:
    authority = CertificateAuthority.create(now, lifetimes.authority, f"{_NAME}-ca").pair
    return CertificateBundle(
        authority, authority.certificate, _signed(authority, names, now, lifetimes)
    )


def _followed_up(
    kept: CertificateBundle, names: Collection[str], now: datetime, lifetimes: CertificateLifetimes
) -> CertificateBundle:
    authority = CertificateAuthority.create(now, lifetimes.authority, f"{_NAME}-ca").pair
    serving = _signed(kept.authority, names, now, lifetimes)
    return CertificateBundle(authority, authority.certificate + kept.trusted, serving)


def _signed(
    authority: KeyPair, names: Collection[str], now: datetime, lifetimes: CertificateLifetimes
) -> KeyPair:
    """Return a serving certificate, which expires no later than its CA."""
    valid = min(lifetimes.serving, end_of(authority) - now)
    return CertificateAuthority(authority).server_pair(sorted(names), now, valid, _NAME)


def _without_ended(bundle: CertificateBundle, now: datetime) -> CertificateBundle:
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
        raise BundleError("a private key does not match its certificate")


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
    """Parse a certificate; cached, since the same few are checked periodically."""
    return x509.load_pem_x509_certificate(pem)


@lru_cache(maxsize=8)
def _certificates(pem: bytes) -> tuple[x509.Certificate, ...]:
    return tuple(x509.load_pem_x509_certificates(pem))


log = logging.getLogger(__name__)
SECRETS = untyped_kind("Secret")
_TRIES = 10
_MOST_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class ServingCertificate:
    """The serving certificate of the webhook, and the CA bundle for its configurations."""

    pair: KeyPair
    trusted: bytes = b""
    """The CA bundle; empty if the CA is not managed here."""


class CertificateSource(Protocol):
    """A source of the serving certificate: files or a Secret."""

    async def current(self, client: Client) -> ServingCertificate:
        """Return the current certificate; BundleError, OSError or ClientError if there is none."""
        ...


@dataclass(frozen=True, slots=True)
class CertificateFiles:
    """A certificate and its key in files, which another program renews."""

    certificate: Path
    key: Path

    async def current(self, client: Client) -> ServingCertificate:
        """Read the files."""
        del client
        return ServingCertificate(KeyPair(_read(self.certificate), _read(self.key)))


def _read(path: Path) -> bytes:
    with path.open("rb") as file:
        content = file.read(_MOST_BYTES + 1)
    if len(content) > _MOST_BYTES:
        raise BundleError(f"{path}: larger than {_MOST_BYTES} bytes, which is no certificate")
    return content


@dataclass(slots=True)
class SharedSecret:
    """A self-managed certificate in a Secret that all replicas share."""

    namespace: str
    name: str
    names: Collection[str]
    """The DNS names and addresses of the certificate."""
    lifetimes: CertificateLifetimes = DEFAULT_LIFETIMES
    _checked: CertificateBundle | None = field(default=None, init=False, repr=False)
    """The last bundle that was valid: an equal one is not checked again."""

    async def current(self, client: Client) -> ServingCertificate:
        """Return the certificate in the Secret; create or renew it if needed."""
        for _ in range(_TRIES):
            try:
                bundle = await self._agreed(client)
            except ConflictError:  # another replica was faster: see what it wrote
                continue
            return ServingCertificate(bundle.serving, bundle.trusted)
        raise BundleError(
            f"Secret {self.namespace}/{self.name} was changed by others {_TRIES} times in a row"
        )

    async def _agreed(self, client: Client) -> CertificateBundle:
        now = client.clock.now()
        try:
            found = await client.get(SECRETS, self.namespace, self.name)
        except NotFoundError:
            bundle = renewed(None, self.names, now, self.lifetimes)
            await self._create(client, bundle)
            return bundle
        kept = self._kept(found)
        bundle = renewed(kept, self.names, now, self.lifetimes)
        if bundle is not kept:
            await self._replace(client, found, bundle)
        return bundle

    async def _create(self, client: Client, bundle: CertificateBundle) -> None:
        meta = {"namespace": self.namespace, "name": self.name}
        made: Untyped = {"metadata": meta, "type": "kubernetes.io/tls", "data": _encoded(bundle)}
        await client.create(made, SECRETS)
        log.info("created certificates in Secret %s/%s", self.namespace, self.name)

    async def _replace(self, client: Client, found: Untyped, bundle: CertificateBundle) -> None:
        meta = found.get("metadata")
        version = meta.get("resourceVersion") if isinstance(meta, dict) else None
        change = merge({"metadata": {"resourceVersion": version}, "data": _encoded(bundle)})
        await client.patch(SECRETS, self.namespace, self.name, change=change)
        log.info("renewed certificates in Secret %s/%s", self.namespace, self.name)

    def _kept(self, found: Untyped) -> CertificateBundle | None:
        """Return the bundle in the Secret; None if it is invalid."""
        try:
            bundle = _decoded(found)
            if bundle != self._checked:
                self._checked = checked(bundle)
        except BundleError as error:
            log.warning(
                "replacing invalid certificates in Secret %s/%s: %s",
                self.namespace,
                self.name,
                error,
            )
            return None
        return self._checked


def _encoded(bundle: CertificateBundle) -> dict[str, str]:
    parts = {
        "ca.crt": bundle.trusted,
        "ca-next.crt": bundle.authority.certificate,
        "ca.key": bundle.authority.key,
        "tls.crt": bundle.serving.certificate,
        "tls.key": bundle.serving.key,
    }
    return {name: base64.b64encode(part).decode() for name, part in parts.items()}


def _decoded(found: Untyped) -> CertificateBundle:
    data = found.get("data")
    parts = data if isinstance(data, dict) else {}

    def part(name: str) -> bytes:
        try:
            return base64.b64decode(parts[name], validate=True)
        except (KeyError, TypeError, binascii.Error):
            raise BundleError(f"{name} is missing or not valid base64") from None

    authority = KeyPair(part("ca-next.crt"), part("ca.key"))
    return CertificateBundle(authority, part("ca.crt"), KeyPair(part("tls.crt"), part("tls.key")))
