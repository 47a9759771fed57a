"""A certificate authority and what it has signed, and when the two are made anew.

Everything is renewed when a third of its life is left. API servers must trust an authority before
they meet what it has signed, and replicas do not act at the same moment, so an authority is
followed up in two steps: first the new one comes, trusted beside the old one, and the old one signs
a last time; when that certificate's turn comes, the new one signs the next. Until it ends the old
authority stays trusted.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import lru_cache

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import serialization

from bayplan.client.serving.certificates import Authority, KeyPair

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
    """Who signs the next certificate."""
    trusted: bytes
    """The certificates of all authorities that API servers are to trust."""
    serving: KeyPair = field(repr=False)
    """What the webhook shows."""


class BundleError(ValueError):
    """Certificates that cannot be used; the text says why, and holds no key."""


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
    authority = Authority.create(now, lives.authority, f"{_NAME}-ca").pair
    return Bundle(authority, authority.certificate, _signed(authority, names, now, lives))


def _followed_up(kept: Bundle, names: Collection[str], now: datetime, lives: Lives) -> Bundle:
    authority = Authority.create(now, lives.authority, f"{_NAME}-ca").pair
    serving = _signed(kept.authority, names, now, lives)
    return Bundle(authority, authority.certificate + kept.trusted, serving)


def _signed(authority: KeyPair, names: Collection[str], now: datetime, lives: Lives) -> KeyPair:
    """A certificate that ends with its authority at the latest."""
    valid = min(lives.serving, end_of(authority) - now)
    return Authority(authority).server_pair(sorted(names), now, valid, _NAME)


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
