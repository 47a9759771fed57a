"""Where the webhook's certificate comes from: a Secret that replicas share, or files.

Replicas of the webhook share one Secret. Whichever finds that something is due writes it, on the
version that it has read; who comes second is refused by the API server, reads again, and uses what
the first has written. Files are somebody else's to renew (cert-manager's, say): they are read again
whenever they change, and the authority behind them is not ours to install.
"""

from __future__ import annotations

import base64
import binascii
import logging
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from bayplan.admission.certificates.bundle import (
    LIVES,
    Bundle,
    BundleError,
    Lives,
    checked,
    renewed,
)
from bayplan.client import Client, Untyped, merge, untyped_kind
from bayplan.client.errors import ConflictError, NotFoundError
from bayplan.client.serving.certificates import KeyPair

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


class Source(Protocol):
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
