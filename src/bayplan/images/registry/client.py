"""The registry client, with mirrors: resolve tags, get manifests and indexes, download blobs.

Every request is sent to the hosts in order until one succeeds; the last host is the registry
itself, whose error is reported. Manifests are verified here; blobs by their sink.
"""

import asyncio
import contextlib
import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Protocol, TypeVar

import aiohttp
import msgspec

from bayplan.images.registry.credentials import Keyring, RegistryCredentials
from bayplan.images.registry.download import BlobSink, BodyOpener, MinimumRate, download
from bayplan.images.registry.errors import (
    ImageNotFoundError,
    IntegrityError,
    PullError,
    Retrier,
    TransientError,
)
from bayplan.images.registry.hosts import RegistryHost, hosts_for
from bayplan.images.registry.manifests import ACCEPT, MANIFEST_LIMIT, Descriptor
from bayplan.images.registry.transport import RegistryRequest, RegistryTransport
from bayplan.kube.imagereferences import DEFAULT_REGISTRY, ImageReference, is_digest

_URL_LIMIT = 5
_Result = TypeVar("_Result")


class RegistryLogin(msgspec.Struct, frozen=True):
    """The credentials of a pull, and the host they are for."""

    credentials: RegistryCredentials | None = None  # as the request gave them
    server: str = ""  # the only host they are for; empty means the image's registry
    keyring: Keyring[RegistryCredentials] = Keyring()

    def for_host(self, host: RegistryHost, reference: ImageReference) -> RegistryCredentials | None:
        """Return the credentials for a host; mirrors never get the registry's."""
        if self.credentials and self._is_for(host, reference):
            return self.credentials
        name = host.authority if host.mirror else reference.registry
        return next(filter(None, self.keyring.lookup(name, reference.path)), None)

    def _is_for(self, host: RegistryHost, reference: ImageReference) -> bool:
        server = self.server.partition("://")[2] if "://" in self.server else self.server
        # The default port may be given or left out.
        server, authority, registry = (
            name.partition("/")[0].removesuffix(host.default_port)
            for name in (server, host.authority, reference.registry)
        )
        if host.mirror:
            return server == authority
        aliases = {"index.docker.io"} if registry == DEFAULT_REGISTRY else set()
        return server in {"", registry, authority} | aliases


class PullSource(msgspec.Struct, frozen=True):
    """An image reference, and the login for its registry."""

    reference: ImageReference
    login: RegistryLogin = RegistryLogin()

    def request(
        self, method: str, host: RegistryHost, path: str, headers: dict[str, str] | None = None
    ) -> RegistryRequest:
        """Return a request to a host for a path of this image's repository."""
        repository = self.reference.path
        credentials = self.login.for_host(host, self.reference)
        query = {"ns": self.reference.registry} if host.mirror else {}
        path = f"{repository}/{path}"
        return RegistryRequest(method, host, repository, path, credentials, headers or {}, query)


class ManifestDocument(msgspec.Struct, frozen=True):
    """A verified manifest or index."""

    digest: str
    media_type: str
    data: bytes


class VerifyingBlobSink(BlobSink, Protocol):
    """A sink that verifies the digest of its content."""

    def verify(self) -> None:
        """Raise if the bytes are not those of the digest."""


class RegistryClient:
    """A client of registries, through mirrors where there are any."""

    def __init__(
        self,
        transport: RegistryTransport,
        retrier: Retrier,
        minimum_rate: MinimumRate,
        hosts_directory: Path | None = None,
    ) -> None:
        self._transport = transport
        self._retrier = retrier
        self._minimum_rate = minimum_rate
        self._hosts_directory = hosts_directory

    async def resolve(self, source: PullSource) -> str | None:
        """Return the digest of a reference; None if the registry does not report it.

        A digest is resolved as well: content of the store must only be used with credentials that
        the registry accepts for that repository.
        """
        reference = source.reference

        async def send(host: RegistryHost) -> str | None:
            path = f"manifests/{reference.target}"
            request = source.request("HEAD", host, path, {"Accept": ACCEPT})
            async with self._in_time(path), self._transport.send(request) as response:
                digest = reference.digest or response.headers.get("Docker-Content-Digest", "")
                return digest if is_digest(digest) else None

        return await self._each_host(source, "resolve", send)

    async def document(self, source: PullSource, target: str) -> ManifestDocument:
        """Get a manifest or index by tag or digest."""

        async def send(host: RegistryHost) -> ManifestDocument:
            request = source.request("GET", host, f"manifests/{target}", {"Accept": ACCEPT})
            async with self._in_time(target), self._transport.send(request) as response:
                data = await _bounded(response, target)
                media_type = response.headers.get("Content-Type", "")
                return ManifestDocument(_verified(data, target), media_type, data)

        return await self._each_host(source, "pull" if is_digest(target) else "resolve", send)

    async def holds(self, source: PullSource, digest: str) -> bool:
        """Return whether the image's repository has a blob; False if that cannot be found out."""

        async def send(host: RegistryHost) -> bool:
            request = source.request("HEAD", host, f"blobs/{digest}")
            async with self._in_time(digest), self._transport.send(request):
                return True

        try:
            return await self._each_host(source, "pull", send)
        except PullError:
            return False

    async def blob(
        self, source: PullSource, descriptor: Descriptor, sink: VerifyingBlobSink
    ) -> None:
        """Download a blob into a sink; foreign layers from their own URLs if necessary."""

        async def send(host: RegistryHost) -> None:
            path = f"blobs/{descriptor.digest}"
            await self._download(
                lambda headers: self._transport.send(source.request("GET", host, path, headers)),
                descriptor,
                sink,
            )

        try:
            await self._each_host(source, "pull", send)
        except ImageNotFoundError:
            if not descriptor.urls:
                raise
            await self._foreign(source, descriptor, sink)

    async def _foreign(
        self, source: PullSource, descriptor: Descriptor, sink: VerifyingBlobSink
    ) -> None:
        # A manifest's URLs are allowed where a redirect of its registry would be.
        base = self._hosts(source.reference.registry)[-1].base
        failure: PullError = ImageNotFoundError(f"{descriptor.digest} has no HTTP URL")
        for url in descriptor.urls[:_URL_LIMIT]:
            if not url.startswith(("https://", "http://")):
                continue
            try:
                return await self._download(self._foreign_opener(base, url), descriptor, sink)
            except PullError as error:
                failure = error
        raise failure

    def _foreign_opener(self, base: str, url: str) -> BodyOpener:
        request = RegistryRequest("GET", RegistryHost(base), "", url)
        return lambda headers: self._transport.send(
            msgspec.structs.replace(request, headers=headers)
        )

    async def _download(
        self, opener: BodyOpener, descriptor: Descriptor, sink: VerifyingBlobSink
    ) -> None:
        """Download the rest; if the digest is wrong after a resume, download all once more."""
        continued = sink.received > 0
        try:
            await self._download_once(opener, descriptor, sink)
        except IntegrityError:
            sink.restart()
            if not continued:
                raise
            await self._download_once(opener, descriptor, sink)

    async def _download_once(
        self, opener: BodyOpener, descriptor: Descriptor, sink: VerifyingBlobSink
    ) -> None:
        await download(opener, sink, descriptor.size, self._retrier, self._minimum_rate)
        sink.verify()

    @contextlib.asynccontextmanager
    async def _in_time(self, target: str) -> AsyncIterator[None]:
        """Limit the time of a whole small response, against servers that send slowly."""
        seconds = self._transport.timeouts.document
        try:
            async with asyncio.timeout(seconds):
                yield
        except TimeoutError:
            raise TransientError(f"no complete response for {target} in {seconds:g} s") from None

    def _hosts(self, registry: str) -> list[RegistryHost]:
        try:
            return hosts_for(registry, self._hosts_directory)
        except (ValueError, OSError) as error:
            raise PullError(f"the hosts file of {registry} cannot be read: {error}") from error

    async def _each_host(
        self,
        source: PullSource,
        capability: str,
        send: Callable[[RegistryHost], Awaitable[_Result]],
    ) -> _Result:
        registry = source.reference.registry
        failures: list[PullError] = []
        for host in self._hosts(registry):
            if capability not in host.capabilities:
                continue
            try:
                return await self._retrier.run(partial(send, host))
            except PullError as error:
                failures.append(error)
        if not failures:
            raise PullError(f"no host of {registry} has the capability {capability}")
        for mirror_failure in failures[:-1]:
            failures[-1].add_note(f"before that, a mirror: {mirror_failure}")
        raise failures[-1]


async def _bounded(response: aiohttp.ClientResponse, target: str) -> bytes:
    body = bytearray()
    async for chunk in response.content.iter_chunked(64 * 1024):
        body += chunk
        if len(body) > MANIFEST_LIMIT:
            raise IntegrityError(f"manifest {target} is larger than {MANIFEST_LIMIT} bytes")
    return bytes(body)


def _verified(data: bytes, target: str) -> str:
    if not is_digest(target):
        return f"sha256:{hashlib.sha256(data).hexdigest()}"
    algorithm = target.partition(":")[0]
    actual = f"{algorithm}:{hashlib.new(algorithm, data).hexdigest()}"
    if actual != target:
        raise IntegrityError(f"manifest {target} came with the digest {actual}")
    return actual
